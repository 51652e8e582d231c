"""`hostnamectl`, `timedatectl`, `localectl`, `loginctl`, `journalctl`, `hostname`: what else systemd has."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from typing import Callable

from . import accounts, wire
from .accounts import replace_file
from .facts import load as load_facts

__all__ = ["run"]


def run(name: str, words: list[str]) -> int:
    """Answer for one of them."""
    actions: dict[str, Callable[[list[str]], int]] = {
        "hostname": _hostname,
        "hostnamectl": _hostnamectl,
        "timedatectl": _timedatectl,
        "localectl": _localectl,
        "loginctl": _loginctl,
        "journalctl": _journalctl,
        "systemd-detect-virt": _virtual,
        "locale-gen": _quiet,
        "update-locale": _update_locale,
    }
    return actions[name](words)


def _needs_root(what: str) -> bool:
    if os.geteuid() == 0:
        return False
    sys.stderr.write(f"Could not {what}: Interactive authentication required.\n")
    return True


def _set_name(name: str) -> None:
    replace_file("/etc/hostname", f"{name}\n")
    with contextlib.suppress(OSError):
        wire.ask({"do": "hostname", "name": name})


def _hostname(words: list[str]) -> int:
    own = socket.gethostname()
    flags = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    if names:
        if _needs_root("set the host name"):
            return 1
        with contextlib.suppress(OSError):
            wire.ask({"do": "hostname", "name": names[0]})
        return 0
    if {"-I", "--all-ip-addresses", "-i", "--ip-address"} & set(flags):
        found = [
            one["address"]
            for interface in load_facts().get("interfaces", [])
            if interface["name"] != "lo"
            for one in interface["addresses"]
            if not one["address"].startswith("fe80")
        ]
        print(" ".join(found))
    elif {"-f", "--fqdn", "--long", "-A"} & set(flags):
        print(_full_name(own))
    elif {"-d", "--domain"} & set(flags):
        print(_full_name(own).partition(".")[2])
    else:
        print(own.partition(".")[0] if {"-s", "--short"} & set(flags) else own)
    return 0


def _full_name(own: str) -> str:
    with contextlib.suppress(OSError), open("/etc/hosts", encoding="utf-8") as stream:
        for line in stream:
            names = line.split("#")[0].split()[1:]
            if own in names:
                return next((name for name in names if name.startswith(f"{own}.")), own)
    return own


def _hostnamectl(words: list[str]) -> int:
    rest = [word for word in words if not word.startswith("-")]
    verb = rest[0] if rest else "status"
    if verb in ("set-hostname", "hostname") and len(rest) > 1:
        if _needs_root("set property"):
            return 1
        _set_name(rest[1])
        return 0
    if verb == "hostname":
        print(socket.gethostname())
        return 0
    if verb.startswith("set-"):
        return 1 if _needs_root("set property") else 0
    if verb != "status":
        sys.stderr.write(f"Unknown command verb {verb}.\n")
        return 1
    machine = _first_line("/etc/machine-id")
    system = "Debian GNU/Linux 12 (bookworm)"
    print(
        f" Static hostname: {_first_line('/etc/hostname')}\n"
        "       Icon name: computer-vm\n         Chassis: vm"
    )
    print(
        f"      Machine ID: {machine}\n         Boot ID: {machine[::-1]}\n"
        f"  Virtualization: {_virtualization()}"
    )
    print(
        f"Operating System: {system}\n          Kernel: Linux {os.uname().release}\n    Architecture: x86-64"
    )
    return 0


def _timedatectl(words: list[str]) -> int:
    rest = [word for word in words if not word.startswith("-")]
    verb = rest[0] if rest else "status"
    zone = _first_line("/etc/timezone") or "Etc/UTC"
    if verb == "set-timezone" and len(rest) > 1:
        path = f"/usr/share/zoneinfo/{rest[1]}"
        if ".." in rest[1] or not os.path.isfile(path):
            sys.stderr.write(f"Failed to set time zone: Invalid or not installed time zone '{rest[1]}'\n")
            return 1
        if _needs_root("set the time zone"):
            return 1
        replace_file("/etc/timezone", f"{rest[1]}\n")
        with contextlib.suppress(FileNotFoundError):
            os.unlink("/etc/localtime")
        os.symlink(path, "/etc/localtime")
    elif verb == "list-timezones":
        for folder, _, files in sorted(os.walk("/usr/share/zoneinfo")):
            short = folder.removeprefix("/usr/share/zoneinfo").lstrip("/")
            if short and not short.startswith(("posix", "right")):
                print("\n".join(f"{short}/{name}" for name in sorted(files)))
    elif verb == "show":
        print(f"Timezone={zone}\nLocalRTC=no\nCanNTP=yes\nNTP=yes\nNTPSynchronized=yes")
    elif verb == "status":
        now = time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime())
        print(
            f"               Local time: {now}\n           Universal time: {now}\n"
            f"                 RTC time: {now}"
        )
        print(
            f"                Time zone: {zone} (UTC, +0000)\nSystem clock synchronized: yes\n"
            "              NTP service: active"
        )
        print("          RTC in local TZ: no")
    elif verb in ("set-ntp", "set-time", "set-local-rtc"):
        return 1 if _needs_root("set time") else 0
    else:
        sys.stderr.write(f"Unknown command verb {verb}.\n")
        return 1
    return 0


def _localectl(words: list[str]) -> int:
    rest = [word for word in words if not word.startswith("-")]
    verb = rest[0] if rest else "status"
    if verb == "set-locale":
        if _needs_root("set locale"):
            return 1
        lines = [word if "=" in word else f"LANG={word}" for word in rest[1:]]
        replace_file("/etc/default/locale", "".join(f"{line}\n" for line in lines))
    elif verb == "status":
        print(
            f"System Locale: {_first_line('/etc/default/locale')}\n    VC Keymap: (unset)\n   X11 Layout: us"
        )
    return 0


def _update_locale(words: list[str]) -> int:
    lines = [word for word in words if "=" in word]
    replace_file("/etc/default/locale", "".join(f"{line}\n" for line in lines))
    return 0


def _loginctl(words: list[str]) -> int:
    verb = next((word for word in words if not word.startswith("-")), "list-sessions")
    if verb == "list-users":
        for user in accounts.users():
            if user.uid >= 1000 and user.name != "nobody":
                print(f"{user.uid:>5} {user.name}")
    return 0


def _journalctl(words: list[str]) -> int:
    """Print what the log files of the guest have."""
    lines = 200
    for at, word in enumerate(words):
        if word in ("-n", "--lines") and at + 1 < len(words) and words[at + 1].isdigit():
            lines = int(words[at + 1])
    found: list[str] = []
    for path in ("/var/log/syslog", "/var/log/cloud-init.log", "/var/log/dpkg.log"):
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
            found += stream.read().splitlines()
    print("\n".join(found[-lines:]) if found else "-- No entries --")
    return 0


def _virtualization() -> str:
    return "lxc" if load_facts().get("kind") == "lxc" else "kvm"


def _virtual(words: list[str]) -> int:
    kind = _virtualization()
    if {"-c", "--container"} & set(words) and kind != "lxc":
        print("none")
        return 1
    if {"-v", "--vm"} & set(words) and kind == "lxc":
        print("none")
        return 1
    if not {"-q", "--quiet"} & set(words):
        print(kind)
    return 0


def _quiet(_words: list[str]) -> int:
    return 0


def _first_line(path: str) -> str:
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as stream:
        return stream.readline().strip()
    return ""
