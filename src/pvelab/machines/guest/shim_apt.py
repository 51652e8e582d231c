"""`apt-get`, `apt`, `apt-cache`, `apt-mark`: packages from the catalogue, installed in the records."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import sys
import time
from typing import Any, Callable

from . import packages
from .accounts import lock_records
from .packages import AvailablePackage, Plan

__all__ = ["run"]

_WITH_VALUE = ("-o", "-c", "-t", "--target-release", "--option", "--config-file", "-a")
_STABLE = "\nWARNING: apt does not have a stable CLI interface. Use with caution in scripts.\n\n"


def run(name: str, words: list[str]) -> int:
    """Do one of the verbs."""
    flags, rest = _split(words)
    if "--version" in flags or "-v" in flags:
        print("apt 2.6.1 (amd64)")
        return 0
    if name == "apt-mark":
        return _mark(rest)
    if name in ("apt-config", "apt-key", "add-apt-repository"):
        return _other(name, flags, rest)
    verb = rest[0] if rest else ""
    if name == "apt" and not sys.stdout.isatty():
        sys.stderr.write(_STABLE)
    if name == "apt-cache" or verb in (
        "policy",
        "show",
        "search",
        "list",
        "madison",
        "depends",
        "showpkg",
        "pkgnames",
    ):
        return _cache(verb, rest[1:], flags)
    return _get(verb, rest[1:], flags)


def _get(verb: str, names: list[str], flags: set[str]) -> int:
    simulate = bool(flags & {"-s", "--simulate", "--dry-run", "--just-print", "--no-act", "--recon"})
    if not simulate and os.geteuid() != 0 and verb not in ("download", "source", "changelog", ""):
        what = "/var/lib/apt/lists/lock" if verb == "update" else "/var/lib/dpkg/lock-frontend"
        sys.stderr.write(f"E: Could not open lock file {what} - open (13: Permission denied)\n")
        end = (
            "lock directory /var/lib/apt/lists/"
            if verb == "update"
            else f"acquire the dpkg frontend lock ({what})"
        )
        sys.stderr.write(f"E: Unable to {end}, are you root?\n")
        return 100
    if verb == "update":
        return _update()
    if verb in ("install", "reinstall", "remove", "purge", "autoremove", "autopurge", "upgrade") or verb in (
        "dist-upgrade",
        "full-upgrade",
        "build-dep",
    ):
        with lock_records("dpkg") if not simulate else contextlib.nullcontext():
            return _change(verb, names, flags, simulate=simulate)
    if verb in ("clean", "autoclean", "check", "auto-clean", "dist-clean"):
        return 0
    sys.stderr.write(f"E: Invalid operation {verb}\n")
    return 100


def _update() -> int:
    for number, suite in enumerate(("bookworm", "bookworm-updates", "bookworm-security"), 1):
        print(f"Hit:{number} http://mirror.lab/debian {suite} InRelease")
    print("Reading package lists...")
    for path in (
        "/var/lib/apt/lists/mirror.lab_debian_dists_bookworm_InRelease",
        "/var/cache/apt/pkgcache.bin",
    ):
        with open(path, "a", encoding="utf-8"):
            os.utime(path)
    os.utime("/var/lib/apt/lists")
    os.makedirs("/var/lib/apt/periodic", exist_ok=True)
    with open("/var/lib/apt/periodic/update-success-stamp", "a", encoding="utf-8"):
        os.utime("/var/lib/apt/periodic/update-success-stamp")
    return 0


def _change(verb: str, names: list[str], flags: set[str], *, simulate: bool) -> int:
    print("Reading package lists...\nBuilding dependency tree...\nReading state information...")
    purge = verb in ("purge", "autopurge") or "--purge" in flags
    try:
        plan = _make_plan(verb, names, flags, purge=purge)
    except LookupError as err:
        sys.stdout.flush()
        sys.stderr.write(f"E: {err.args[0]}\n")
        return 100
    _announce(plan, verb, purge=purge)
    changes = len(plan.new) + len(plan.upgraded) + len(plan.removed)
    if simulate:
        _simulate(plan, purge=purge)
        return 0
    if not changes:
        if verb in ("install", "reinstall"):
            packages.set_flags(plan.asked, auto=False)
        return 0
    extra = set(plan.new) - set(plan.asked)
    needs_yes = extra or plan.removed or plan.upgraded
    if needs_yes and not flags & {"-y", "--yes", "--assume-yes", "-qq", "--force-yes", "--trivial-only"}:
        sys.stdout.write("Do you want to continue? [Y/n] ")
        sys.stdout.flush()
        answer = sys.stdin.readline()
        if not answer or answer.strip().lower() not in ("", "y", "yes"):
            print("Abort.")
            return 1
    if flags & {"-d", "--download-only"}:
        return 0
    _perform(plan, purge=purge)
    return 0


def _make_plan(verb: str, names: list[str], flags: set[str], *, purge: bool) -> Plan:
    if verb in ("remove", "purge"):
        return packages.plan_remove([name.rstrip("+-") for name in _plain(names)], purge=purge)
    if verb in ("autoremove", "autopurge"):
        gone = packages.plan_remove(_plain(names), purge=purge).removed if names else []
        return Plan([], [], [*gone, *(one for one in packages.list_unneeded() if one not in gone)], {}, [])
    if verb in ("upgrade", "dist-upgrade", "full-upgrade"):
        have, known = packages.list_installed(), packages.catalogue()
        old = [
            name
            for name, record in have.items()
            if name in known and record["state"] == "ii" and not record.get("held")
            if packages.compare_versions(known[name].version, record["version"]) > 0
        ]
        return Plan([], old, [], {name: known[name].version for name in old}, [])
    if verb == "build-dep":
        return Plan([], [], [], {}, [])
    return _plan_install(verb, names, flags)


def _plan_install(verb: str, names: list[str], flags: set[str]) -> Plan:
    wanted, versions, gone = [], {}, []
    for word in names:
        if word.endswith(".deb"):
            raise LookupError(f"Unsupported file {word} given on commandline")
        if word.endswith("-") and word not in packages.catalogue():
            gone.append(word[:-1])
            continue
        name, _, version = word.partition("=")
        name = name.partition("/")[0].partition(":")[0]
        found = _match_packages(name)
        wanted += found
        if version:
            versions.update(
                dict.fromkeys(
                    found, version.rstrip("*") if "*" not in version else _expand_version(name, version)
                )
            )
    plan = packages.plan_install(
        dict.fromkeys(wanted),
        versions,
        only_upgrade="--only-upgrade" in flags,
        reinstall=verb == "reinstall" or "--reinstall" in flags,
    )
    return plan._replace(removed=packages.plan_remove(gone).removed if gone else [])


def _expand_version(name: str, pattern: str) -> str:
    known = packages.catalogue().get(name)
    return known.version if known and fnmatch.fnmatchcase(known.version, pattern) else pattern


def _match_packages(name: str) -> list[str]:
    if "*" in name or "?" in name:
        found = fnmatch.filter(packages.catalogue(), name)
        if not found:
            raise LookupError(f"Unable to locate package {name}")
        return found
    return [name]


def _plain(names: list[str]) -> list[str]:
    return [one for name in names for one in _match_packages(name.partition("=")[0].partition(":")[0])]


def _announce(plan: Plan, verb: str, *, purge: bool) -> None:
    have = packages.list_installed()
    for name in plan.asked:
        if verb in ("install", "reinstall") and name not in plan.new and name not in plan.upgraded:
            if packages.is_there(have, name):
                print(f"{name} is already the newest version ({have[name]['version']}).")
        elif verb in ("remove", "purge") and name not in plan.removed:
            print(f"Package '{name}' is not installed, so not removed")
    extra = [name for name in plan.new if name not in plan.asked]
    _list_names("The following additional packages will be installed:", extra)
    _list_names(
        "The following packages will be REMOVED:", [f"{name}{'*' if purge else ''}" for name in plan.removed]
    )
    _list_names("The following NEW packages will be installed:", plan.new)
    _list_names("The following packages will be upgraded:", plan.upgraded)
    print(
        f"{len(plan.upgraded)} upgraded, {len(plan.new)} newly installed,"
        f" {len(plan.removed)} to remove and 0 not upgraded."
    )


def _list_names(title: str, names: list[str]) -> None:
    if names:
        print(title)
        print(f"  {' '.join(sorted(names))}")


def _simulate(plan: Plan, *, purge: bool) -> None:
    for name in plan.removed:
        version = packages.list_installed().get(name, {}).get("version", "")
        print(f"{'Purg' if purge else 'Remv'} {name} [{version}]")
    for name in [*plan.new, *plan.upgraded]:
        old = packages.list_installed().get(name, {})
        shown = f"[{old['version']}] " if old and name in plan.upgraded else ""
        print(f"Inst {name} {shown}({plan.versions[name]} Debian:12.9/stable [amd64])")
    for name in [*plan.new, *plan.upgraded]:
        print(f"Conf {name} ({plan.versions[name]} Debian:12.9/stable [amd64])")


def _perform(plan: Plan, *, purge: bool) -> None:
    known = packages.catalogue()
    have = packages.list_installed()
    for number, name in enumerate([*plan.new, *plan.upgraded], 1):
        print(
            f"Get:{number} http://mirror.lab/debian bookworm/main amd64 {name} amd64"
            f" {plan.versions[name]} [{known[name].size // 3 + 1} kB]"
        )
    for name in plan.removed:
        print(f"Removing {name} ({have.get(name, {}).get('version', '')}) ...")
        if purge:
            print(f"Purging configuration files for {name} ({have.get(name, {}).get('version', '')}) ...")
    for name in plan.new:
        print(
            f"Selecting previously unselected package {name}.\nUnpacking {name} ({plan.versions[name]}) ..."
        )
    packages.apply(plan, purge=purge)
    for name in [*plan.new, *plan.upgraded]:
        print(f"Setting up {name} ({plan.versions[name]}) ...")
    line = f"Start-Date: {time.strftime('%Y-%m-%d  %H:%M:%S')}\nCommandline: {' '.join(sys.argv)}\n"
    with contextlib.suppress(OSError), open("/var/log/apt/history.log", "a", encoding="utf-8") as stream:
        stream.write(f"{line}Install: {', '.join(plan.new)}\nRemove: {', '.join(plan.removed)}\n\n")


def _cache(verb: str, names: list[str], flags: set[str]) -> int:
    known, have = packages.catalogue(), packages.list_installed()
    if verb == "policy":
        for name in names:
            if name in known or name in have:
                _policy(name, known.get(name), have)
        return 0
    if verb in ("show", "showpkg", "depends", "madison"):
        return max((_tell(verb, word.partition("=")[0], known) for word in names), default=0)
    for name in sorted(known):
        if verb == "pkgnames" and name.startswith(names[0] if names else ""):
            print(name)
        if verb == "search" and all(word in name for word in names):
            print(f"{name} - {known[name].summary}")
        if verb == "list":
            _list_one(known[name], have, names, flags)
    return 0


def _tell(verb: str, name: str, known: dict[str, AvailablePackage]) -> int:
    if name not in known:
        sys.stderr.write(
            "E: No packages found\n" if verb == "show" else f"E: Unable to locate package {name}\n"
        )
        return 100
    one = known[name]
    if verb == "madison":
        print(f"{name:>10} | {one.version} | http://mirror.lab/debian bookworm/main amd64 Packages")
    elif verb == "depends":
        print("\n".join([name, *(f"  Depends: {other}" for other in one.depends)]))
    else:
        _show(one)
    return 0


def _policy(name: str, one: object, have: dict[str, dict[str, object]]) -> None:
    candidate = one.version if isinstance(one, AvailablePackage) else "(none)"
    there = have.get(name, {}).get("version") if packages.is_there(have, name) else None
    print(f"{name}:\n  Installed: {there or '(none)'}\n  Candidate: {candidate}\n  Version table:")
    mark = "***" if there == candidate else "   "
    print(f" {mark} {candidate} 500\n        500 http://mirror.lab/debian bookworm/main amd64 Packages")
    if there:
        print("        100 /var/lib/dpkg/status")


def _show(one: AvailablePackage) -> None:
    print(
        f"Package: {one.name}\nVersion: {one.version}\nInstalled-Size: {one.size}\n"
        f"Maintainer: Stackyard Lab <lab@stackyard.invalid>\nArchitecture: {one.architecture}"
    )
    if one.depends:
        print(f"Depends: {', '.join(one.depends)}")
    print(f"Description: {one.summary}\nSection: {one.section}\nPriority: optional\n")


def _list_one(
    one: AvailablePackage, have: dict[str, dict[str, object]], names: list[str], flags: set[str]
) -> None:
    there = packages.is_there(have, one.name)
    if names and not any(fnmatch.fnmatch(one.name, name) for name in names):
        return
    if ("--installed" in flags and not there) or "--upgradable" in flags:
        return
    print(
        f"{one.name}/stable{',now' if there else ''} {one.version}"
        f" {one.architecture}{' [installed]' if there else ''}"
    )


def _mark(rest: list[str]) -> int:
    verb, names = (rest[0] if rest else ""), rest[1:]
    have = packages.list_installed()
    shown: dict[str, Callable[[str], Any]] = {
        "showauto": lambda name: have[name].get("auto"),
        "showmanual": lambda name: not have[name].get("auto"),
        "showhold": lambda name: have[name].get("held"),
    }
    if verb in shown:
        for name in sorted(have):
            if shown[verb](name) and packages.is_there(have, name) and (not names or name in names):
                print(name)
        return 0
    texts = {
        "auto": ({"auto": True}, "set to automatically installed."),
        "manual": ({"auto": False}, "set to manually installed."),
        "hold": ({"held": True}, "set on hold."),
        "unhold": ({"held": False}, "canceled hold on"),
    }
    if verb not in texts:
        sys.stderr.write(f"E: Invalid operation {verb}\n")
        return 100
    flags, text = texts[verb]
    for name in names:
        if name not in have:
            sys.stderr.write(f"E: Unable to locate package {name}\n")
            return 100
    with lock_records("dpkg"):
        packages.set_flags(names, **flags)
    for name in names:
        print(f"Canceled hold on {name}." if verb == "unhold" else f"{name} {text}")
    return 0


def _other(name: str, flags: set[str], rest: list[str]) -> int:
    if name == "apt-config":
        print('APT "";\nAPT::Architecture "amd64";\nDir "/";')
    elif name == "add-apt-repository" and rest and "--remove" not in flags:
        os.makedirs("/etc/apt/sources.list.d", exist_ok=True)
        with open("/etc/apt/sources.list.d/added.list", "a", encoding="utf-8") as stream:
            stream.write(f"{' '.join(rest)}\n")
    return 0


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    flags: set[str] = set()
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word in _WITH_VALUE:
            next(waiting, None)
        elif word.startswith("--") or (word.startswith("-") and word[1:2] in ("o", "t", "c")):
            flags.add(word.partition("=")[0])
        elif word.startswith("-") and len(word) > 1:
            flags |= {word} if word == "-qq" else {f"-{letter}" for letter in word[1:]}
            if word.count("q") > 1:
                flags.add("-qq")
        else:
            rest.append(word)
    return flags, rest
