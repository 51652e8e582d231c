"""What one part of a model needs of another, as references between resources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.desired import Container, DeclaredFile, Download
from stackyard.render.terms import Written, address, expression

if TYPE_CHECKING:
    from stackyard.desired import Desired, File, Guest

__all__ = ["BRIDGE", "CONTAINER", "DOWNLOAD", "FILE", "POOL", "VLAN", "VM", "References"]

VM = "proxmox_virtual_environment_vm"
CONTAINER = "proxmox_virtual_environment_container"
FILE = "proxmox_virtual_environment_file"
POOL = "proxmox_virtual_environment_pool"
DOWNLOAD = "proxmox_download_file"
BRIDGE = "proxmox_network_linux_bridge"
VLAN = "proxmox_network_linux_vlan"
APPLIER = "proxmox_sdn_applier.sdn"


@dataclass(frozen=True, slots=True)
class References:
    """The references into one model."""

    desired: Desired
    _contents: dict[str, str] = field(init=False)
    _files: dict[str, str] = field(init=False)
    _guests: dict[str, str] = field(init=False)
    _interfaces: dict[tuple[str, str], str] = field(init=False)

    def __post_init__(self) -> None:
        files = {
            file.key: address(DOWNLOAD if isinstance(file, Download) else FILE, file.key)
            for file in self.desired.files
        }
        guests = {guest.key: address_of(guest) for guest in self.desired.guests}
        interfaces = {
            **{(b.node, b.name): address(BRIDGE, f"{b.node}/{b.name}") for b in self.desired.bridges},
            **{(v.node, v.name): address(VLAN, f"{v.node}/{v.name}") for v in self.desired.vlans},
        }
        contents = {file.key: file.content for file in self.desired.files if isinstance(file, Download)}
        object.__setattr__(self, "_contents", contents)
        object.__setattr__(self, "_files", files)
        object.__setattr__(self, "_guests", guests)
        object.__setattr__(self, "_interfaces", interfaces)

    def file(self, file: File | None) -> str | Written | None:
        """Return the volume id of a file: as it stands, or that of the resource that makes it."""
        if isinstance(file, DeclaredFile):
            return expression(f"{self._files[file.file]}.id")
        return file

    def is_download(self, file: File | None, content: str) -> bool:
        """Tell whether a file is one of the model that is downloaded as some content."""
        return isinstance(file, DeclaredFile) and self._contents.get(file.file) == content

    def pool(self, name: str | None) -> str | Written | None:
        """Return the name of a pool, through its resource where the model declares it."""
        if name is not None and any(pool.name == name for pool in self.desired.pools):
            return expression(f"{address(POOL, name)}.pool_id")
        return name

    def before(self, guest: Guest) -> tuple[str, ...]:
        """Return the addresses of what has to be there before a guest, without being named in it."""
        needed = {self._guests[key] for key in guest.depends_on}
        vnets = {vnet.name for vnet in self.desired.vnets}
        for nic in guest.nics:
            interface = self._interfaces.get((guest.node, nic.bridge))
            if interface is not None:
                needed.add(interface)
            if nic.bridge in vnets:
                needed.add(APPLIER)
        return tuple(sorted(needed))


def address_of(guest: Guest) -> str:
    """Return the address of a guest's resource."""
    return address(CONTAINER if isinstance(guest, Container) else VM, guest.key)
