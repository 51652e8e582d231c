"""The way back from a guest of the model to the entry of an env that says it, in as few words as possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.desired import Container

if TYPE_CHECKING:
    from stackyard.desired import Guest

__all__ = ["EntryDefaults", "describe_guest"]

# What the entry says in another way, or in an order of its own.
_SHORT = frozenset(
    "key name node vm_id cpu memory disks root_disk nics efi_disk tpm cloud_init imported".split()
)
_PLAIN_CARD = frozenset(("bridge", "vlan", "ipv4", "gateway4"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDefaults:
    """What an entry need not say, because others say it.

    Attributes:
        node: The name of the node's file; None where the env names the same.
        datastore: Where disks of that node go.
        bridge: What cards are plugged into.
    """

    node: str | None
    datastore: str
    bridge: str


def describe_guest(guest: Guest, around: EntryDefaults) -> dict[str, Any]:
    """Return the entry of an env for a guest that is there."""
    said = _whole_numbers(guest.model_dump(mode="json", exclude_defaults=True))
    entry: dict[str, Any] = {"name": guest.name}
    if isinstance(guest, Container):
        entry["type"] = "ct"
    entry["vmid"] = guest.vm_id
    if around.node is not None:
        entry["node"] = around.node
    entry["imported"] = guest.imported
    entry |= _size(guest, said)
    entry |= _drives(said, around)
    entry |= _cards(said.get("nics", []), around)
    entry |= {key: value for key, value in said.items() if key not in _SHORT}
    return entry


def _size(guest: Guest, said: dict[str, Any]) -> dict[str, Any]:
    cpu = {key: value for key, value in said.get("cpu", {}).items() if key != "cores"}
    memory = {"dedicated_mib": guest.memory.dedicated_mib, **said.get("memory", {})}
    size: dict[str, Any] = {"cores": guest.cpu.cores}
    size["memory"] = memory if len(memory) > 1 else guest.memory.dedicated_mib
    return size | ({"cpu": cpu} if cpu else {})


def _drives(said: dict[str, Any], around: EntryDefaults) -> dict[str, Any]:
    drives: dict[str, Any] = {}
    disks = [_without_datastore(disk, around) for disk in said.get("disks", ())]
    if len(disks) == 1 and disks[0].keys() <= {"interface", "size_gib"} and disks[0]["interface"] == "scsi0":
        drives["disk"] = disks[0].get("size_gib", 8)
    elif disks:
        drives["disks"] = [{"size_gib": 8, **disk} for disk in disks]
    if "root_disk" in said:
        root = _without_datastore(said["root_disk"], around)
        drives["disk"] = root.pop("size_gib", 8)
        drives |= {"root_disk": root} if root else {}
    for key in ("efi_disk", "tpm", "cloud_init"):
        if key in said:
            drives[key] = _without_datastore(said[key], around)
    return drives


def _without_datastore(part: dict[str, Any], around: EntryDefaults) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != "datastore" or value != around.datastore}


def _cards(nics: list[dict[str, Any]], around: EntryDefaults) -> dict[str, Any]:
    cards = [
        {
            key: value
            for key, value in {"bridge": "vmbr0", **nic}.items()
            if (key, value) != ("bridge", around.bridge)
        }
        for nic in nics
    ]
    if len(cards) != 1 or not cards[0].keys() <= _PLAIN_CARD:
        return {"nics": cards}
    short = {"ipv4": "ip", "gateway4": "gateway"}
    return {short.get(key, key): value for key, value in cards[0].items()}


def _whole_numbers(value: Any) -> Any:
    """Return a value with numbers as people write them: 4, and not 4.0."""
    if isinstance(value, dict):
        return {key: _whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
