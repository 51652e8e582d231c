"""Guests in state files of other configurations: a `terraform.tfstate` of plain OpenTofu or Terraform.

A guest has one owner. `read_other_state` reads such a file, `match` finds the guests of a cluster in it, and
`lock_other_states` holds the files, as the engine does, until an import has taken the guests over and
`release` has removed exactly them. Nothing here writes to the cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import FileError, InvalidInputError, Location
from stackyard.render.references import short_type
from stackyard.state.document import read_document
from stackyard.state.inside import read_instances
from stackyard.state.moving.base import is_marker
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from stackyard.state.inside import Instance

__all__ = [
    "OtherGuest",
    "OtherState",
    "OtherStateError",
    "parse_other_state",
    "read_other_state",
    "resource_of",
]

# The types of bpg/proxmox under all of their names, and those of Telmate/proxmox.
_KINDS = {
    **dict.fromkeys(("vm", "vm2", "cloned_vm", "vm_qemu"), "vm"),
    **dict.fromkeys(("container", "lxc"), "container"),
}
_HIGHEST_SERIAL = 10**17
# An id as Telmate/proxmox writes it: NODE/qemu/100.
_JOINED_ID = re.compile(r"([^/]+)/(?:qemu|lxc)/(\d+)")
_INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]$')


class OtherStateError(InvalidInputError):
    """A state file cannot be used: it is damaged, encrypted, of another format, or has no guest to import."""

    code = "E-IMPORT-STATE"
    summary = "The state file cannot be used"
    default_remedy = "Name the state of the configuration that manages the guests now; nothing was changed."


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherGuest:
    """A guest as another state has it.

    Attributes:
        address: The address of its resource there.
        kind: `vm` or `container`.
        vm_id: Its id.
        node: The node that the state names.
        name: Its name; empty where the state does not know it.
        parts: The addresses of its firewall and its replications, which go with it.
    """

    address: str
    kind: str
    vm_id: int
    node: str
    name: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherState:
    """A state file and the guests in it.

    Attributes:
        path: The file.
        serial: Which version of the state it is.
        lineage: Which state.
        guests: Its guests, those whose creation failed too.
        instances: How many instances each resource has, by address.
        data: The file; secrets in clear.
    """

    path: Path
    serial: int
    lineage: str
    guests: tuple[OtherGuest, ...]
    instances: Mapping[str, int]
    data: bytes

    def __repr__(self) -> str:
        return f"OtherState({str(self.path)!r}, serial={self.serial}, guests={len(self.guests)})"

    def match(self, rows: Iterable[Mapping[str, Any]], nodes: Collection[str]) -> Iterator[OtherGuest]:
        """Yield the guests of this state that are on a cluster: same id, same type, a node of the cluster.

        Args:
            rows: The guests as the cluster lists them.
            nodes: The nodes of the cluster; a guest that moved to another of them is the same guest.
        """
        types = {int(row["vmid"]): "vm" if row["type"] == "qemu" else "container" for row in rows}
        for guest in self.guests:
            if guest.node in nodes and types.get(guest.vm_id) == guest.kind:
                yield guest


def read_other_state(path: Path) -> OtherState:
    """Read a state file.

    Raises:
        FileError: It cannot be read.
        OtherStateError: It is no state, or one that cannot be looked into.
    """
    try:
        data = path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    return parse_other_state(path, data)


def parse_other_state(path: Path, data: bytes) -> OtherState:
    """Read the content of a state file.

    Raises:
        OtherStateError: It is no state, or one that cannot be looked into.
    """
    where = Location(str(path))
    if is_marker(data):
        raise OtherStateError(f"The state of {path} was moved; the file says where it is now.", where=where)
    try:
        document = read_document(data)
        if document.is_encrypted:
            raise _make_encrypted_error(path)
        if document.serial >= _HIGHEST_SERIAL:
            raise OtherStateError(f"{path}: its serial {document.serial} is too high.", where=where)
        instances = read_instances(parse_json(data, LARGE))
    except BodyRefusedError as err:
        raise OtherStateError(f"{path}: {err.detail}", where=where) from err
    managed = [one for one in instances.values() if one.mode == "managed"]
    counts: dict[str, int] = {}
    for one in managed:
        counts[resource_of(one.address)] = counts.get(resource_of(one.address), 0) + 1
    return OtherState(
        path=path,
        serial=document.serial,
        lineage=document.lineage,
        guests=tuple(_list_guests(managed)),
        instances=counts,
        data=data,
    )


def _make_encrypted_error(path: Path) -> OtherStateError:
    return OtherStateError(
        f"{path} is encrypted by OpenTofu.",
        where=Location(str(path)),
        remedy="Let OpenTofu decrypt it: `tofu state pull > old.tfstate`. Import with `--from-state"
        " old.tfstate`, and store what is left with `tofu state push old.tfstate`.",
    )


def _list_guests(instances: Sequence[Instance]) -> Iterator[OtherGuest]:
    parts: dict[tuple[str, int], list[str]] = {}
    for one in instances:
        owner = _owner(one)
        if owner is not None:
            parts.setdefault(owner, []).append(one.address)
    for one in instances:
        kind, place = _KINDS.get(short_type(one.type)), _place(one.attributes)
        if kind is not None and place is not None:
            yield OtherGuest(
                address=one.address,
                kind=kind,
                vm_id=place[1],
                node=place[0],
                name=_name(one.attributes),
                parts=tuple(parts.get(place, ())),
            )


def _owner(one: Instance) -> tuple[str, int] | None:
    """Return the node and the id of the guest whose firewall or replication this is."""
    kind, attributes = short_type(one.type), one.attributes
    if kind == "replication":
        node, vm_id = attributes.get("source"), str(attributes.get("id")).partition("-")[0]
    elif kind.startswith("firewall_"):
        node, vm_id = (
            attributes.get("node_name"),
            str(attributes.get("vm_id") or attributes.get("container_id")),
        )
    else:
        return None
    return (str(node or ""), int(vm_id)) if vm_id.isdecimal() else None


def _place(attributes: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the node and the id of a guest; None where the state does not know them."""
    joined = _JOINED_ID.fullmatch(str(attributes.get("id")))
    if joined is not None:
        return joined[1], int(joined[2])
    for name in ("vm_id", "id"):
        vm_id = str(attributes.get(name))
        if vm_id.isdecimal():
            return str(attributes.get("node_name") or ""), int(vm_id)
    return None


def _name(attributes: Mapping[str, Any]) -> str:
    """Return the name of a VM, or the host name of a container."""
    blocks = attributes.get("initialization") or [{}]
    first = blocks[0] if isinstance(blocks, list) else blocks
    inside = first.get("hostname") if isinstance(first, dict) else None
    return str(attributes.get("name") or attributes.get("hostname") or inside or "")


def resource_of(address: str) -> str:
    """Return an address without the key of the instance; keys of modules stay."""
    return _INDEX.sub("", address.partition(" (deposed ")[0])
