"""`systemctl`, `service` and their kin, on the records of the guest's services."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import sys
import time
from typing import Any, Optional

from . import services
from .accounts import lock_records

__all__ = ["run"]

_CHANGES = (
    "start stop restart try-restart reload reload-or-restart try-reload-or-restart enable disable reenable"
    " mask unmask kill reset-failed preset revert set-property edit isolate"
).split()
_NOTHING = (
    "daemon-reload daemon-reexec preset-all list-jobs set-environment import-environment set-default".split()
)
_WANTS = "/etc/systemd/system/multi-user.target.wants"


def run(name: str, words: list[str]) -> int:
    """Do one of the verbs."""
    if name == "service":
        return _service(words)
    if name == "invoke-rc.d":
        return systemctl([*words[1:2], *words[:1]])
    if name == "update-rc.d":
        verb = words[1] if len(words) > 1 else ""
        return systemctl([{"defaults": "enable", "remove": "disable"}.get(verb, verb), *words[:1]])
    return systemctl(words)


def _service(words: list[str]) -> int:
    if words and words[0] == "--status-all":
        for unit in services.names():
            if unit.endswith(".service"):
                found = services.find(unit) or {}
                print(f" [ {'+' if found.get('active') else '-'} ]  {unit.removesuffix('.service')}")
        return 0
    if len(words) < 2:
        sys.stderr.write(
            "Usage: service < option > | --status-all | [ service_name [ command | --full-restart ] ]\n"
        )
        return 1
    if services.find(words[0]) is None:
        sys.stderr.write(f"{words[0]}: unrecognized service\n")
        return 1
    return systemctl([words[1], words[0]])


def systemctl(words: list[str]) -> int:
    """Answer for systemctl."""
    flags = [word for word in words if word.startswith("-")]
    rest = _without_values([word for word in words if not word.startswith("-") or word == "--"], words)
    verb = rest[0] if rest else "list-units"
    units = rest[1:]
    if "--version" in flags:
        print("systemd 252 (252.33-1~deb12u1)\n+PAM +AUDIT +SELINUX")
        return 0
    if verb in ("reboot", "poweroff", "halt", "kexec", "soft-reboot"):
        from . import shim_power  # lazy: hardly ever needed

        return shim_power.run(verb, [])
    if verb in _NOTHING:
        return 0
    if verb in _CHANGES:
        if os.geteuid() != 0 and "--user" not in flags:
            sys.stderr.write(f"Failed to {verb} {' '.join(units)}: Interactive authentication required.\n")
            sys.stderr.write("See system logs and 'systemctl status' for details.\n")
            return 1
        with lock_records("services"):
            return max((_change(verb, unit, flags) for unit in units), default=1)
    return _ask(verb, units, flags, words)


def _ask(verb: str, units: list[str], flags: list[str], words: list[str]) -> int:
    if verb == "is-active":
        return _each(units, flags, lambda found: _state(found), good=("active",), bad=3)
    if verb == "is-failed":
        return _each(units, flags, lambda found: _state(found), good=("failed",), bad=1)
    if verb == "is-enabled":
        return _each(units, flags, _read_enablement, good=("enabled", "static", "alias", "indirect"), bad=1)
    if verb == "is-system-running":
        print("running")
        return 0
    if verb == "show":
        return _show(units, words)
    if verb == "status":
        return max((_status(unit) for unit in units), default=0)
    if verb == "cat":
        return max((_cat(unit) for unit in units), default=1)
    if verb == "list-unit-files":
        return _list_files(units, words)
    if verb == "list-units":
        return _list_units(units, words)
    if verb in ("list-timers", "list-sockets", "list-dependencies", "show-environment"):
        return 0
    if verb == "get-default":
        print("multi-user.target")
        return 0
    sys.stderr.write(f"Unknown command verb {verb}.\n")
    return 1


def _change(verb: str, unit: str, flags: list[str]) -> int:
    name = services.full_name(unit)
    found = services.find(name)
    if found is None:
        if verb in ("enable", "disable", "reenable", "preset"):
            sys.stderr.write(f"Failed to {verb} unit: Unit file {name} does not exist.\n")
            return 1
        if verb in ("mask", "unmask"):
            sys.stderr.write(f"Unit {name} does not exist, proceeding anyway.\n")
            found = {"name": name}
        else:
            gone = 5
            text = "not loaded" if verb == "stop" else "not found"
            sys.stderr.write(f"Failed to {verb} {name}: Unit {name} {text}.\n")
            return gone
    if found.get("masked") and verb in ("start", "restart", "reload-or-restart", "enable"):
        sys.stderr.write(f"Failed to {verb} {name}: Unit {name} is masked.\n")
        return 1
    if verb in ("start", "stop", "restart", "try-restart", "reload", "reload-or-restart", "kill"):
        return _power(verb, found)
    if verb == "try-reload-or-restart" or verb in (
        "reset-failed",
        "set-property",
        "edit",
        "revert",
        "isolate",
    ):
        return 0
    return _enable(verb, found, flags)


def _power(verb: str, found: dict[str, Any]) -> int:
    name = found["name"]
    if verb in ("stop", "kill"):
        services.update(name, active=False, failed=False, pid=0)
    elif verb == "reload":
        if not found.get("active"):
            sys.stderr.write(f"{name} is not active, cannot reload.\n")
            return 1
    elif verb == "try-restart" and not found.get("active"):
        return 0
    else:
        command = str(found.get("text", {}).get("ExecStart", "")).lstrip("-@:+!").split()
        if command and command[0].startswith("/") and not os.access(command[0], os.X_OK):
            services.update(name, active=False, failed=True)
            sys.stderr.write(f"Job for {name} failed because the control process exited with error code.\n")
            sys.stderr.write(f'See "systemctl status {name}" and "journalctl -xeu {name}" for details.\n')
            return 1
        services.update(name, active=True, failed=False, since=time.time())
    return 0


def _enable(verb: str, found: dict[str, Any], flags: list[str]) -> int:
    name = found["name"]
    link = f"{_WANTS}/{name}"
    if verb == "mask":
        services.update(name, masked=True)
        print(f"Created symlink /etc/systemd/system/{name} \u2192 /dev/null.")
    elif verb == "unmask":
        services.update(name, masked=False)
        print(f"Removed /etc/systemd/system/{name}.")
    elif verb in ("enable", "reenable", "preset"):
        if found.get("enabled") != "static":
            if found.get("enabled") != "enabled":
                with contextlib.suppress(OSError):
                    os.makedirs(_WANTS, exist_ok=True)
                    os.symlink(str(found["file"]), link)
                sys.stderr.write(f"Created symlink {link} \u2192 {found['file']}.\n")
            services.update(name, enabled="enabled")
    elif found.get("enabled") != "static":
        with contextlib.suppress(OSError):
            os.unlink(link)
        if found.get("enabled") == "enabled":
            sys.stderr.write(f"Removed {link}.\n")
        services.update(name, enabled="disabled")
    if "--now" in flags:
        return _power("start" if verb in ("enable", "unmask") else "stop", services.find(name) or found)
    return 0


def _state(found: Optional[dict[str, Any]]) -> str:
    if found is None:
        return "inactive"
    return "failed" if found.get("failed") else "active" if found.get("active") else "inactive"


def _read_enablement(found: Optional[dict[str, Any]]) -> str:
    if found is None:
        return ""
    return "masked" if found.get("masked") else str(found.get("enabled", "disabled"))


def _each(units: list[str], flags: list[str], tell: Any, *, good: tuple[str, ...], bad: int) -> int:
    hits = 0
    for unit in units:
        found = services.find(unit)
        text = tell(found)
        if not text:
            sys.stderr.write(
                f"Failed to get unit file state for {services.full_name(unit)}: No such file or directory\n"
            )
            continue
        hits += text in good
        if not {"-q", "--quiet"} & set(flags):
            print(text)
    return 0 if hits else bad


def _properties(unit: str) -> dict[str, str]:
    name = services.full_name(unit)
    found = services.find(name)
    if found is None:
        return {
            "Id": name,
            "Names": name,
            "LoadState": "not-found",
            "ActiveState": "inactive",
            "SubState": "dead",
            "UnitFileState": "",
            "Description": name,
            "MainPID": "0",
            "LoadError": f'org.freedesktop.systemd1.NoSuchUnit "Unit {name} not found."',
        }
    state = _state(found)
    when = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(found.get("since") or 0))
    return {
        "Type": "notify",
        "Restart": "on-failure",
        "Id": name,
        "Names": name,
        "Description": str(found["text"].get("Description", name)),
        "LoadState": "masked" if found.get("masked") else "loaded",
        "ActiveState": state,
        "SubState": {"active": "running", "failed": "failed"}.get(state, "dead"),
        "FragmentPath": str(found["file"]),
        "UnitFileState": _read_enablement(found),
        "UnitFilePreset": "enabled",
        "MainPID": str(found.get("pid", 0) if state == "active" else 0),
        "ExecMainStatus": "0",
        "ExecMainStartTimestamp": when,
        "ActiveEnterTimestamp": when,
        "CanStart": "yes",
        "CanStop": "yes",
        "CanReload": "yes",
        "NeedDaemonReload": "no",
        "Result": "exit-code" if state == "failed" else "success",
    }


def _show(units: list[str], words: list[str]) -> int:
    wanted: list[str] = []
    for at, word in enumerate(words):
        if word.startswith("--property="):
            wanted += word.partition("=")[2].split(",")
        elif word in ("-p", "--property", "-P") and at + 1 < len(words):
            wanted += words[at + 1].split(",")
        elif word.startswith("-p") and len(word) > 2:
            wanted += word[2:].split(",")
    bare = "--value" in words or "-P" in words
    for unit in units or ["system"]:
        found = _properties(unit) if units else {"Version": "252.33-1~deb12u1", "SystemState": "running"}
        for key in wanted or found:
            if key in found:
                print(found[key] if bare else f"{key}={found[key]}")
    return 0


def _status(unit: str) -> int:
    found = services.find(unit)
    if found is None:
        sys.stderr.write(f"Unit {services.full_name(unit)} could not be found.\n")
        return 4
    shown = _properties(unit)
    active = shown["ActiveState"] == "active"
    print(f"{'●' if active else '○'} {shown['Id']} - {shown['Description']}")
    print(
        f"     Loaded: {shown['LoadState']} ({shown['FragmentPath']};"
        f" {shown['UnitFileState']}; preset: enabled)"
    )
    since = f" since {shown['ActiveEnterTimestamp']}" if active else ""
    print(f"     Active: {shown['ActiveState']} ({shown['SubState']}){since}")
    if active:
        print(f"   Main PID: {shown['MainPID']}")
    return 0 if active else 3


def _cat(unit: str) -> int:
    found = services.find(unit)
    if found is None:
        sys.stderr.write(f"No files found for {services.full_name(unit)}.\n")
        return 1
    print(f"# {found['file']}")
    with contextlib.suppress(OSError), open(found["file"], encoding="utf-8") as stream:
        sys.stdout.write(stream.read())
    return 0


def _select_units(units: list[str], words: list[str]) -> list[str]:
    kinds = [word.partition("=")[2] for word in words if word.startswith(("--type=", "-t="))]
    kinds += [words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-t", "--type")]
    kinds = [kind for one in kinds for kind in one.split(",")]
    names = [name for name in services.names() if not kinds or name.rpartition(".")[2] in kinds]
    patterns = [services.full_name(unit) if "*" not in unit else unit for unit in units]
    return [name for name in names if not patterns or any(fnmatch.fnmatch(name, one) for one in patterns)]


def _list_files(units: list[str], words: list[str]) -> int:
    rows = [(name, _read_enablement(services.find(name))) for name in _select_units(units, words)]
    states = [word.partition("=")[2] for word in words if word.startswith("--state=")]
    rows = [row for row in rows if not states or row[1] in states[0].split(",")]
    heads = "--no-legend" not in words and "--legend=false" not in words
    if heads:
        print(f"{'UNIT FILE':<40} {'STATE':<15} PRESET")
    for name, state in rows:
        print(f"{name:<40} {state:<15} enabled")
    if heads:
        print(f"\n{len(rows)} unit files listed.")
    return 0 if rows else 1


def _list_units(units: list[str], words: list[str]) -> int:
    heads = "--no-legend" not in words and "--legend=false" not in words
    shows_all = "--all" in words or "-a" in words
    if heads:
        print(f"  {'UNIT':<40} LOAD   ACTIVE   SUB     DESCRIPTION")
    count = 0
    for name in _select_units(units, words):
        shown = _properties(name)
        if shows_all or shown["ActiveState"] != "inactive":
            load, active, sub = shown["LoadState"], shown["ActiveState"], shown["SubState"]
            print(f"  {name:<40} {load:<6} {active:<8} {sub:<7} {shown['Description']}")
            count += 1
    if heads:
        print(f"\n{count} loaded units listed.")
    return 0


def _without_values(rest: list[str], words: list[str]) -> list[str]:
    """Drop words that belong to an option before them."""
    takes = (
        "-p",
        "--property",
        "-t",
        "--type",
        "-n",
        "--lines",
        "-o",
        "--output",
        "-P",
        "--state",
        "-H",
        "-M",
    )
    dropped = [words[at + 1] for at, word in enumerate(words[:-1]) if word in takes]
    found = []
    for word in rest:
        if word in dropped:
            dropped.remove(word)
        elif word != "--":
            found.append(word)
    return found
