"""The services of a guest as systemd would have them: records, beside unit files that people write."""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import Any, Optional

from . import records

__all__ = ["boot", "bring", "find", "full_name", "names", "plant", "take_away", "update"]

_RECORD = "services"
_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system")
_KINDS = (".service", ".socket", ".timer", ".target", ".mount", ".path", ".slice", ".device", ".scope")
_TARGETS = (
    "multi-user.target graphical.target network.target network-online.target basic.target sysinit.target"
).split()
_ALIASES = {
    "sshd.service": "ssh.service",
    "apache.service": "apache2.service",
    "mysql.service": "mariadb.service",
}
# These are there because something else wants them.
_STATIC = ("dbus.service", "systemd-journald.service", "systemd-logind.service", "systemd-udevd.service")


def full_name(name: str) -> str:
    """Return a unit's full name."""
    whole = name if name.endswith(_KINDS) else f"{name}.service"
    return _ALIASES.get(whole, whole)


def plant() -> None:
    """Record the targets; packages bring the rest."""
    from . import packages  # lazy: it depends on this module

    record = records.load(_RECORD)
    for target in _TARGETS:
        record[target] = {"enabled": "static", "active": True, "since": time.time(), "kind": "target"}
    records.save(_RECORD, record)
    for one in packages.catalogue().values():
        if one.is_base:
            for unit in one.services:
                bring(unit, one.name)


def boot() -> None:
    """Start what is enabled, as a boot does."""
    record = records.load(_RECORD)
    for unit in record.values():
        on = unit.get("enabled") in ("enabled", "static") and not unit.get("masked")
        unit.update(active=on, failed=False, since=time.time(), pid=_pid() if on else 0)
    if record:
        records.save(_RECORD, record)


def bring(name: str, package: str) -> None:
    """Add the unit of a package: enabled and started, as on Debian."""
    unit = full_name(name)
    record = records.load(_RECORD)
    old = record.get(unit, {})
    enabled = "static" if unit in _STATIC else old.get("enabled", "enabled")
    masked = bool(old.get("masked"))
    record[unit] = {
        **old,
        "enabled": enabled,
        "active": not masked,
        "since": time.time(),
        "package": package,
        "pid": _pid(),
    }
    records.save(_RECORD, record)


def take_away(name: str) -> None:
    """Drop the unit of a package that is removed."""
    record = records.load(_RECORD)
    record.pop(full_name(name), None)
    records.save(_RECORD, record)


def names() -> list[str]:
    """Return all units: those of packages, and those that have a file."""
    found = set(records.load(_RECORD))
    for folder in _FOLDERS:
        with contextlib.suppress(OSError):
            found.update(name for name in os.listdir(folder) if name.endswith(_KINDS))
    return sorted(found)


def find(name: str) -> Optional[dict[str, Any]]:
    """Return what is known of a unit: its record, and its file if it has one; None for no such unit."""
    unit = full_name(name)
    known = records.load(_RECORD).get(unit)
    path = _file(unit)
    if known is None and path is None and "@" in unit:
        template = re.sub(r"@[^.]*", "@", unit)
        path = _file(template)
    if known is None and path is None:
        return None
    found = {"enabled": "disabled", "active": False, "since": 0.0, **(known or {})}
    found["name"] = unit
    found["file"] = path or f"/lib/systemd/system/{unit}"
    found["text"] = _text(path) if path else {}
    if path is not None and os.path.realpath(path) == "/dev/null":
        found["masked"] = True
    if path is not None and known is None and "WantedBy" not in found["text"]:
        found["enabled"] = "static"
    return found


def update(name: str, **fields: Any) -> None:
    """Change the record of a unit."""
    unit = full_name(name)
    record = records.load(_RECORD)
    known = {"enabled": "disabled", "active": False, "since": 0.0, **record.get(unit, {})}
    if fields.get("active") and not known["active"]:
        fields = {"since": time.time(), "pid": _pid(), **fields}
    record[unit] = {**known, **fields}
    records.save(_RECORD, record)


def _file(unit: str) -> Optional[str]:
    for folder in _FOLDERS:
        if os.path.lexists(f"{folder}/{unit}"):
            return f"{folder}/{unit}"
    return None


def _text(path: str) -> dict[str, str]:
    found: dict[str, str] = {}
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as stream:
        for line in stream.read(65536).splitlines():
            key, equals, value = line.partition("=")
            if equals and not key.startswith("#"):
                found[key.strip()] = value.strip()
    return found


def _pid() -> int:
    return 300 + int(time.time() * 1000) % 9000
