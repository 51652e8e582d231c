"""The packages of a guest: which are known, which are installed, and what that brings.

The record is `packages.json`; the status file of dpkg is written from it, for whoever reads that. Nothing is
downloaded: a program that the machine does not have becomes a small script that says what it represents.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from . import records, services
from .accounts import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AvailablePackage",
    "Plan",
    "apply",
    "catalogue",
    "compare_versions",
    "files_of",
    "list_installed",
    "list_unneeded",
    "plan_install",
    "plan_remove",
    "plant",
]

_RECORD = "packages"
_STUBS = "/usr/local/bin"
# Folders into which people put files of their own as soon as the package is there.
_FOLDERS = {
    "apache2": ("/etc/apache2/sites-available", "/etc/apache2/sites-enabled", "/var/www/html"),
    "haproxy": ("/etc/haproxy/errors",),
    "mariadb-server": ("/etc/mysql/mariadb.conf.d", "/var/lib/mysql"),
    "nginx-common": (
        "/etc/nginx/conf.d",
        "/etc/nginx/sites-available",
        "/etc/nginx/sites-enabled",
        "/var/www/html",
    ),
    "postgresql-15": ("/etc/postgresql/15/main/conf.d", "/var/lib/postgresql/15/main"),
    "prometheus": ("/etc/prometheus",),
}


class AvailablePackage(NamedTuple):
    """A package that can be installed."""

    name: str
    version: str
    section: str
    size: int
    architecture: str
    is_base: bool
    depends: list[str]
    services: list[str]
    programs: list[str]

    @property
    def summary(self) -> str:
        """One line on what it is."""
        return f"{self.name} ({self.section})"


class Plan(NamedTuple):
    """What is going to happen: names in the order in which it happens."""

    new: list[str]
    upgraded: list[str]
    removed: list[str]
    versions: dict[str, str]
    asked: list[str]


def catalogue() -> dict[str, AvailablePackage]:
    """Return all packages that are known, by name."""
    found: dict[str, AvailablePackage] = {}
    path = os.path.join(os.path.dirname(__file__), "catalogue.tsv")
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            name, version, section, size, arch, base, deps, units, programs = line.rstrip("\n").split("\t")
            found[name] = AvailablePackage(
                name,
                version,
                section,
                int(size),
                arch,
                base == "b",
                _words(deps),
                _words(units),
                _words(programs),
            )
    return found


def list_installed() -> dict[str, dict[str, Any]]:
    """Return the records of packages by name: `version`, `state` (`ii`, `rc`), `auto`, `held`."""
    return records.load(_RECORD)


def plant(codename: str) -> None:
    """Record what a fresh system has."""
    del codename
    found = {one.name: _record(one.version, auto=False) for one in catalogue().values() if one.is_base}
    _save(found)


def plan_install(
    names: Iterable[str], versions: dict[str, str], *, only_upgrade: bool = False, reinstall: bool = False
) -> Plan:
    """Return what installing some packages would do.

    Raises:
        LookupError: One of them is not known; the text is what apt says.
    """
    known, have = catalogue(), list_installed()
    plan = Plan([], [], [], {}, list(names))
    for name in plan.asked:
        if name not in known:
            raise LookupError(f"Unable to locate package {name}")
        wanted = versions.get(name)
        if wanted is not None and wanted not in (known[name].version, have.get(name, {}).get("version")):
            raise LookupError(f"Version '{wanted}' for '{name}' was not found")
        _add(name, wanted, (known, have), plan, only_upgrade=only_upgrade, reinstall=reinstall)
    return plan


def plan_remove(names: Iterable[str], *, purge: bool = False) -> Plan:
    """Return what removing packages, and all that needs them, would do.

    Raises:
        LookupError: One of them is not known.
    """
    known, have = catalogue(), list_installed()
    asked = list(names)
    gone: list[str] = []
    for name in asked:
        if name not in known and name not in have:
            raise LookupError(f"Unable to locate package {name}")
    waiting = [name for name in asked if is_there(have, name) or (purge and name in have)]
    while waiting:
        name = waiting.pop(0)
        if name in gone:
            continue
        gone.append(name)
        waiting += [
            other
            for other in have
            if is_there(have, other) and other in known and name in known[other].depends and other not in gone
        ]
    return Plan([], [], gone, {}, asked)


def apply(plan: Plan, *, purge: bool = False) -> None:
    """Make a plan true: records, services, programs, configuration folders."""
    known, have = catalogue(), list_installed()
    for name in plan.removed:
        _take_away(known.get(name), name, have, purge=purge)
    for name in [*plan.new, *plan.upgraded]:
        one = known[name]
        version = plan.versions.get(name, one.version)
        have[name] = _record(version, auto=name not in plan.asked and have.get(name, {}).get("auto", True))
        _bring(one, version)
    for name in plan.asked:
        if name in have:
            have[name]["auto"] = False
    _save(have)
    _note(plan)


def list_unneeded() -> list[str]:
    """Return packages that were installed for others and that nothing needs any more."""
    known, have = catalogue(), list_installed()
    there = [name for name in have if is_there(have, name)]
    needed = [name for name in there if not have[name].get("auto")]
    seen = set(needed)
    while needed:
        one = known.get(needed.pop())
        for other in one.depends if one else ():
            if other not in seen:
                seen.add(other)
                needed.append(other)
    return [name for name in there if name not in seen]


def is_there(have: dict[str, dict[str, Any]], name: str) -> bool:
    """Return whether a package is installed, not only its configuration."""
    return have.get(name, {}).get("state") == "ii"


def set_flags(names: Iterable[str], **flags: bool) -> None:
    """Mark installed packages: `auto`, `held`."""
    have = list_installed()
    for name in names:
        if name in have:
            have[name].update(flags)
    _save(have)


def files_of(name: str) -> list[str]:
    """Return the files of an installed package, as far as they are known."""
    one = catalogue().get(name)
    if one is None:
        return []
    found = [
        "/.",
        "/usr",
        "/usr/share",
        "/usr/share/doc",
        f"/usr/share/doc/{name}",
        f"/usr/share/doc/{name}/copyright",
    ]
    found += [f"/usr/bin/{program}" for program in one.programs]
    found += [f"/lib/systemd/system/{services.full_name(unit)}" for unit in one.services]
    return found


def compare_versions(left: str, right: str) -> int:
    """Compare two versions as dpkg does: below, at or above zero."""
    epochs = [int(one.split(":", 1)[0]) if ":" in one else 0 for one in (left, right)]
    if epochs[0] != epochs[1]:
        return epochs[0] - epochs[1]
    rests = [one.split(":", 1)[-1] for one in (left, right)]
    parts = [one.rpartition("-") if "-" in one else (one, "", "") for one in rests]
    return _compare(parts[0][0], parts[1][0]) or _compare(parts[0][2], parts[1][2])


def _add(
    name: str,
    wanted: Optional[str],
    state: tuple[dict[str, AvailablePackage], dict[str, dict[str, Any]]],
    plan: Plan,
    *,
    only_upgrade: bool = False,
    reinstall: bool = False,
) -> None:
    known, have = state
    if name in plan.new or name in plan.upgraded:
        return
    version = wanted or known[name].version
    if is_there(have, name):
        if have[name]["version"] != version or (reinstall and name in plan.asked):
            plan.upgraded.append(name)
            plan.versions[name] = version
        return
    if only_upgrade:
        return
    for other in known[name].depends:
        _add(other, None, state, plan)
    plan.new.append(name)
    plan.versions[name] = version


def _bring(one: AvailablePackage, version: str) -> None:
    for unit in one.services:
        services.bring(unit, one.name)
    folders = [f"/etc/{one.services[0].partition('@')[0]}"] if one.services else []
    for folder in (*folders, *_FOLDERS.get(one.name, ())):
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
    for program in one.programs:
        if not any(os.path.exists(f"{folder}/{program}") for folder in ("/usr/bin", "/usr/sbin", _STUBS)):
            with contextlib.suppress(OSError):
                os.makedirs(_STUBS, exist_ok=True)
                replace_file(f"{_STUBS}/{program}", _stub(one.name, program, version), 0o755)


def _stub(package: str, program: str, version: str) -> str:
    upstream = version.split(":", 1)[-1].rpartition("-")[0] or version
    return (
        "#!/bin/sh\n"
        f"# A stand-in: {package} is recorded as installed in this guest of the lab, without its files.\n"
        f'case "${{1:-}}" in -v|-V|--version|version) echo "{program} {upstream}"; exit 0;;'
        " -t) exit 0;; esac\n"
        f'echo "{program}: a stand-in of the lab, which does nothing" >&2\nexit 0\n'
    )


def _take_away(
    one: Optional[AvailablePackage], name: str, have: dict[str, dict[str, Any]], *, purge: bool
) -> None:
    if purge:
        have.pop(name, None)
    elif name in have:
        have[name]["state"] = "rc"
    if one is None:
        return
    for unit in one.services:
        services.take_away(unit)
    for program in one.programs:
        path = f"{_STUBS}/{program}"
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as stream:
            if "A stand-in:" in stream.read(200):
                os.unlink(path)


def _record(version: str, *, auto: bool) -> dict[str, Any]:
    return {"version": version, "state": "ii", "auto": auto, "time": int(time.time())}


def _save(have: dict[str, dict[str, Any]]) -> None:
    records.save(_RECORD, have)
    known = catalogue()
    replace_file(
        "/var/lib/dpkg/status", "\n".join(stanza(name, have[name], known.get(name)) for name in sorted(have))
    )


def stanza(name: str, record: dict[str, Any], one: Optional[AvailablePackage]) -> str:
    """Return what dpkg's status file has of a package."""
    wish = "hold" if record.get("held") else "install" if record["state"] == "ii" else "deinstall"
    state = "ok installed" if record["state"] == "ii" else "ok config-files"
    lines = [
        f"Package: {name}",
        f"Status: {wish} {state}",
        "Priority: optional",
        f"Section: {one.section if one else 'misc'}",
        f"Installed-Size: {one.size if one else 0}",
        "Maintainer: Stackyard Lab <lab@stackyard.invalid>",
        f"Architecture: {one.architecture if one else 'amd64'}",
        f"Version: {record['version']}",
        *([f"Depends: {', '.join(one.depends)}"] if one and one.depends else []),
        f"Description: {one.summary if one else name}",
    ]
    return "\n".join(lines) + "\n"


def _note(plan: Plan) -> None:
    now = time.strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"{now} install {name}:amd64 <none> {plan.versions.get(name, '')}" for name in plan.new]
    lines += [f"{now} status installed {name}:amd64 {plan.versions.get(name, '')}" for name in plan.new]
    lines += [f"{now} remove {name}:amd64" for name in plan.removed]
    with contextlib.suppress(OSError), open("/var/log/dpkg.log", "a", encoding="utf-8") as stream:
        stream.write("".join(f"{line}\n" for line in lines))


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _compare(left: str, right: str) -> int:
    while left or right:
        heads = []
        for text in (left, right):
            size = next((at for at, letter in enumerate(text) if letter.isdigit()), len(text))
            heads.append(text[:size])
        found = _compare_letters(heads[0], heads[1])
        if found:
            return found
        left, right = left[len(heads[0]) :], right[len(heads[1]) :]
        numbers = []
        for text in (left, right):
            size = next((at for at, letter in enumerate(text) if not letter.isdigit()), len(text))
            numbers.append(text[:size])
        if int(numbers[0] or 0) != int(numbers[1] or 0):
            return int(numbers[0] or 0) - int(numbers[1] or 0)
        left, right = left[len(numbers[0]) :], right[len(numbers[1]) :]
    return 0


def _compare_letters(left: str, right: str) -> int:
    for at in range(max(len(left), len(right))):
        ranks = []
        for text in (left, right):
            letter = text[at] if at < len(text) else ""
            rank = (
                0 if not letter else -1 if letter == "~" else ord(letter) + (0 if letter.isalpha() else 256)
            )
            ranks.append(rank)
        if ranks[0] != ranks[1]:
            return ranks[0] - ranks[1]
    return 0
