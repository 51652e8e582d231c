"""Appliances: what the description in an OVF file, or in the archive around one, says of a machine."""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from stackyard.lab.problems import PveError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Appliance", "ApplianceDisk", "read_appliance"]

_MOST_READ = 2**20
_CPU, _MEMORY, _NETWORK = "3", "4", "10"
_NETWORKS = {"e1000": "e1000", "e1000e": "e1000e", "vmxnet3": "vmxnet3", "pcnet32": "pcnet"}
_POWER = re.compile(r"byte\s*\*\s*2\s*\^\s*(\d{1,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplianceDisk:
    """A disk of an appliance: the file it is in, and its capacity."""

    file: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Appliance:
    """A machine that somebody described."""

    name: str
    cores: int
    memory_mib: int
    disks: tuple[ApplianceDisk, ...]
    networks: tuple[str, ...]


def read_appliance(path: Path, *, packed: bool) -> Appliance:
    """Read the description of a machine.

    Args:
        path: The file.
        packed: Whether it is an archive with a description in it, not the description itself.

    Raises:
        PveError: It has none, or one that cannot be read.
    """
    text = _packed(path) if packed else path.read_bytes()[:_MOST_READ]
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - expat bounds what entities grow to, and the text is short
    except ElementTree.ParseError as err:
        raise PveError(f"unable to parse the manifest: {err}") from err
    items = [{_plain(field.tag): (field.text or "").strip() for field in item} for item in _all(root, "Item")]
    return Appliance(
        name=_name(root),
        cores=sum(_number(item.get("VirtualQuantity")) for item in items if item.get("ResourceType") == _CPU),
        memory_mib=sum(_mebibytes(item) for item in items if item.get("ResourceType") == _MEMORY),
        disks=_disks(root),
        networks=tuple(
            _NETWORKS.get(item.get("ResourceSubType", "").lower(), "e1000")
            for item in items
            if item.get("ResourceType") == _NETWORK
        ),
    )


def _packed(path: Path) -> bytes:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.lower().endswith(".ovf") and member.size <= _MOST_READ:
                    stream = archive.extractfile(member)
                    return stream.read() if stream is not None else b""
    except (tarfile.TarError, OSError, EOFError) as err:
        raise PveError(f"unable to extract the manifest: {err}") from err
    raise PveError("unable to extract the manifest: no .ovf file in the archive")


def _all(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if _plain(element.tag) == name]


def _plain(name: str) -> str:
    """Return a name without its namespace; versions of the format differ in that only."""
    return name.rpartition("}")[2]


def _attributes(element: ElementTree.Element) -> dict[str, str]:
    return {_plain(key): value for key, value in element.attrib.items()}


def _name(root: ElementTree.Element) -> str:
    systems = _all(root, "VirtualSystem")
    if not systems:
        raise PveError("unable to parse the manifest: no virtual system")
    named = [(element.text or "").strip() for element in systems[0] if _plain(element.tag) == "Name"]
    found = next(filter(None, named), _attributes(systems[0]).get("id", ""))
    return re.sub(r"[^a-zA-Z0-9\-.]", "-", found)[:63].strip("-.")


def _disks(root: ElementTree.Element) -> tuple[ApplianceDisk, ...]:
    files = {one.get("id"): one.get("href", "") for one in map(_attributes, _all(root, "File"))}
    found = []
    for disk in map(_attributes, _all(root, "Disk")):
        file = files.get(disk.get("fileRef"))
        if file and "/" not in file:
            size = _number(disk.get("capacity")) * _unit(disk.get("capacityAllocationUnits", "byte"))
            found.append(ApplianceDisk(file=file, size=size))
    return tuple(found)


def _unit(text: str) -> int:
    found = _POWER.search(text)
    return 2 ** int(found[1]) if found else 1


def _mebibytes(item: dict[str, str]) -> int:
    return _number(item.get("VirtualQuantity")) * _unit(item.get("AllocationUnits", "byte * 2^20")) // 2**20


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= 18 else 0
