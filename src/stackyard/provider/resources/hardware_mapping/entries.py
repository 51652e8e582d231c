"""What a mapping is on each node: the attribute `map`, and the texts that Proxmox has for it."""

from __future__ import annotations

import re
import urllib.parse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["parse_entry", "print_entry"]

# What the API calls the attributes that it has another name for.
_KEYS = {"comment": "description", "iommu_group": "iommugroup", "subsystem_id": "subsystem-id"}
_ORDER = ("id", "node", "path", "comment", "iommu_group", "subsystem_id")
_NUMBERS = frozenset(("iommu_group",))
# What Proxmox would not keep as it is, and the sign that it is written with.
_SPECIAL = re.compile(r"[^\x20-\x7e]|%")


def print_entry(entry: Mapping[str, Any]) -> str:
    """Return an entry as Proxmox spells it."""
    given = {name: entry.get(name) for name in _ORDER}
    return ",".join(
        f"{_KEYS.get(name, name)}={_quote(value) if name == 'comment' else value}"
        for name, value in given.items()
        if value is not None
    )


def parse_entry(text: str) -> Object:
    """Return the attributes of an entry; what it lacks is null."""
    found = dict(part.partition("=")[::2] for part in text.split(","))
    entry: Object = {name: found.get(_KEYS.get(name, name)) for name in _ORDER}
    for name in _NUMBERS:
        entry[name] = None if entry[name] is None else int(entry[name])
    if entry["comment"] is not None:
        entry["comment"] = _unquote(entry["comment"])
    return entry


def _quote(text: Any) -> str:
    return _SPECIAL.sub(lambda found: urllib.parse.quote(found.group(), safe=""), str(text))


def _unquote(text: str) -> str:
    try:
        return urllib.parse.unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text
