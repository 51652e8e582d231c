"""What one part of a model needs of another, as references between resources."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.desired import Container, DeclaredFile, Download, Snippet
from stackyard.desired.check import list_used_files
from stackyard.render.names import DATA_FIELDS, address, label
from stackyard.render.terms import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.desired import Bridge, Desired, File, Guest, Subnet, Vlan, Zone
    from stackyard.desired.files import AnyFile

__all__ = [
    "BRIDGE",
    "CONTAINER",
    "DOWNLOAD",
    "FILE",
    "HA_RESOURCE",
    "HA_RULE",
    "POOL",
    "SUBNET",
    "VLAN",
    "VM",
    "VNET",
    "References",
    "address_of",
    "address_of_file",
    "data_addresses",
    "guest_kind",
    "interface_label",
    "short_type",
    "subnet_label",
    "vm_id_in",
    "zone_type",
]

VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"
FILE = "proxmox_virtual_environment_file"
POOL = "proxmox_virtual_environment_pool"
DOWNLOAD = "proxmox_download_file"
BRIDGE = "proxmox_network_linux_bridge"
VLAN = "proxmox_network_linux_vlan"
VNET = "proxmox_sdn_vnet"
SUBNET = "proxmox_sdn_subnet"
HA_RESOURCE = "proxmox_haresource"
HA_RULE = "proxmox_harule"
APPLIER = "proxmox_sdn_applier.sdn"
# What guests are, of all types; `vm2` and `cloned_vm` are VMs that bpg describes with its framework.
_GUESTS = {"vm": "vm", "vm2": "vm", "cloned_vm": "vm", "container": "container"}
# The names of types are older and newer ones of the provider.
_PREFIXES = ("proxmox_virtual_environment_", "proxmox_")


def short_type(name: str) -> str:
    """Return the type of a resource without the provider's prefix."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def guest_kind(name: str) -> str:
    """Return what the resources of a type are: `vm`, `container`, or empty where they are no guests."""
    short = short_type(name)
    return _GUESTS.get(short, "") if short != name else ""


def vm_id_in(values: Mapping[str, Any]) -> int | None:
    """Return the vm id of a guest from its attributes; some types have it as their `id`."""
    for value in (values.get("vm_id"), values.get("id")):
        if isinstance(value, str) and value.isdecimal():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


@dataclass(frozen=True, slots=True)
class References:
    """The references into one model."""

    desired: Desired
    _files: dict[str, AnyFile] = field(init=False)
    _guests: dict[str, str] = field(init=False)
    _interfaces: dict[tuple[str, str], str] = field(init=False)

    def __post_init__(self) -> None:
        guests = {guest.key: address_of(guest) for guest in self.desired.guests}
        interfaces = {
            **{(b.node, b.name): f"{BRIDGE}.{interface_label(b)}" for b in self.desired.bridges},
            **{(v.node, v.name): f"{VLAN}.{interface_label(v)}" for v in self.desired.vlans},
        }
        object.__setattr__(self, "_files", {file.key: file for file in self.desired.files})
        object.__setattr__(self, "_guests", guests)
        object.__setattr__(self, "_interfaces", interfaces)

    def file(self, file: File | None) -> str | None:
        """Return the volume id of a file.

        It is written out also for a file of the model, which the guest waits for by `before`: a reference
        would be unknown whenever the file is written again, and would replace every guest that uses it.
        """
        return self._files[file.file].volume_id if isinstance(file, DeclaredFile) else file

    def pool(self, name: str | None) -> str | Expression | None:
        """Return the name of a pool, through its resource where the model declares it."""
        if name is not None and any(pool.name == name for pool in self.desired.pools):
            return expression(f"{address(POOL, name)}.pool_id")
        return name

    def before(self, guest: Guest) -> tuple[str, ...]:
        """Return the addresses of what has to be there before a guest, without being named in it."""
        needed = {self._guests[key] for key in guest.depends_on}
        needed |= {
            address_of_file(self._files[used.file])
            for _, used in list_used_files(guest)
            if isinstance(used, DeclaredFile) and not _is_shared(self._files[used.file])
        }
        vnets = {vnet.name for vnet in self.desired.vnets}
        for nic in guest.nics:
            interface = self._interfaces.get((guest.node, nic.bridge))
            if interface is not None:
                needed.add(interface)
            if nic.bridge in vnets:
                needed.add(APPLIER)
        return tuple(sorted(needed))


def _is_shared(file: AnyFile) -> bool:
    return not isinstance(file, Snippet) and file.is_shared


def address_of_file(file: AnyFile) -> str:
    """Return the address of a file's resource."""
    return address(DOWNLOAD if isinstance(file, Download) else FILE, file.key)


def address_of(guest: Guest) -> str:
    """Return the address of a guest's resource."""
    return address(CONTAINER if isinstance(guest, Container) else VM, guest.key)


def data_addresses(key: str) -> tuple[str, ...]:
    """Return the addresses that the generated cloud-init data of a guest may have."""
    return tuple(address(FILE, f"{key}/{field}") for field in DATA_FIELDS)


def interface_label(interface: Bridge | Vlan) -> str:
    """Return the name of a bridge or VLAN: `pve1_vmbr0-100` for `vmbr0.100`. Nodes have no underscores."""
    return f"{label(interface.node)}_{label(interface.name.replace('.', '-'))}"


def subnet_label(subnet: Subnet) -> str:
    """Return the name of a subnet: `lan_10-0-0-0-24`. Vnets have no underscores."""
    return f"{label(subnet.vnet)}_{re.sub('[.:/]', '-', subnet.cidr)}"


def zone_type(zone: Zone) -> str:
    """Return the type of a zone's resource."""
    return f"proxmox_sdn_zone_{zone.type}"
