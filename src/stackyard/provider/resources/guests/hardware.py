"""The parts of a VM as objects: processor, memory, display, random numbers and CD drives.

Each has both directions: the properties for the API, and the object that is read back. What Proxmox has not
set is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import INTERFACE, is_cdrom
from stackyard.fields.guest import join_tags, split_tags
from stackyard.fields.properties import number, parse, render
from stackyard.provider import fields
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field, Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["EMPTY_DRIVE", "PARTS", "hardware_params", "own_params", "read_hardware", "read_own"]

# How Proxmox spells a CD drive without a disc; also what a drive is when nothing is said of it.
EMPTY_DRIVE = "cdrom"
PARTS = ("cpu", "memory", "rng", "vga", "cdrom")

_MEMORY = Form(write=lambda value: value, read=lambda value: number(parse(value, "current").get("current")))
_TAGS = Form(write=join_tags, read=lambda value: sorted(split_tags(value)))
_OWN = (
    Field(attribute="name", form=TEXT),
    Field(attribute="description", form=TEXT),
    Field(attribute="tags", form=_TAGS),
)
# Parts whose attributes are one property each.
_LOOSE = {
    "cpu": (
        Field(attribute="affinity", form=TEXT),
        Field(attribute="architecture", key="arch", form=TEXT),
        Field(attribute="cores", form=NUMBER),
        Field(attribute="limit", key="cpulimit", form=NUMBER),
        Field(attribute="numa", form=FLAG),
        Field(attribute="sockets", form=NUMBER),
        Field(attribute="units", key="cpuunits", form=NUMBER),
        Field(attribute="vcpus", form=NUMBER),
    ),
    "memory": (
        Field(attribute="size", key="memory", form=_MEMORY),
        Field(attribute="balloon", form=NUMBER),
        Field(attribute="shares", form=NUMBER),
        Field(attribute="hugepages", form=TEXT),
        Field(attribute="keep_hugepages", key="keephugepages", form=FLAG),
    ),
}
_FLAGS = Form(
    write=lambda value: ";".join(sorted(value)) or None,
    read=lambda value: sorted(one for one in str(value).split(";") if one),
)
_EMULATION = (Field(attribute="type", key="cputype", form=TEXT), Field(attribute="flags", form=_FLAGS))
# Parts that are one property string: its key, the property that may come without its name, and the rest.
_WHOLE: Mapping[str, tuple[str, str, tuple[Field, ...]]] = {
    "rng": (
        "rng0",
        "source",
        (
            Field(attribute="source", form=TEXT),
            Field(attribute="max_bytes", form=NUMBER),
            Field(attribute="period", form=NUMBER),
        ),
    ),
    "vga": (
        "vga",
        "type",
        (
            Field(attribute="type", form=TEXT),
            Field(attribute="clipboard", form=TEXT),
            Field(attribute="memory", form=NUMBER),
        ),
    ),
}


def own_params(state: Object) -> dict[str, Any]:
    """Return name, description and tags, where a state has them."""
    sent = fields.params(_OWN, state)
    return {key: value for key, value in sent.items() if value}


def read_own(config: Mapping[str, Any]) -> Object:
    """Return name, description and tags; what is not set is null."""
    return fields.values(_OWN, config)


def hardware_params(state: Object) -> dict[str, Any]:
    """Return the parts that a state has, as properties."""
    sent: dict[str, Any] = {}
    for part, table in _LOOSE.items():
        sent |= fields.params(table, state.get(part) or {})
    emulated = fields.params(_EMULATION, state.get("cpu") or {})
    if emulated.get("cputype"):
        sent["cpu"] = render(emulated) if emulated.get("flags") else emulated["cputype"]
    for part, (key, _, table) in _WHOLE.items():
        text = render(fields.params(table, state.get(part) or {}))
        if text:
            sent[key] = text
    for slot, drive in (state.get("cdrom") or {}).items():
        file = (drive or {}).get("file_id") or EMPTY_DRIVE
        sent[slot] = render({"file": file, "media": "cdrom"})
    return sent


def read_hardware(config: Mapping[str, Any]) -> Object:
    """Return the parts of a VM; one of which nothing is set is null."""
    found = {part: fields.values(table, config) for part, table in _LOOSE.items()}
    emulated = fields.values(_EMULATION, parse(config.get("cpu", ""), "cputype"))
    found["cpu"] |= {**emulated, "flags": emulated["flags"] or None}
    for part, (key, bare, table) in _WHOLE.items():
        found[part] = fields.values(table, parse(config.get(key, ""), bare))
    found["cdrom"] = {
        key: {"file_id": parse(value, "file").get("file", "")}
        for key, value in config.items()
        if INTERFACE.fullmatch(key) and is_cdrom(value)
    }
    return {part: block if _says_something(block) else None for part, block in found.items()}


def _says_something(block: Object) -> bool:
    return any(value is not None for value in block.values())
