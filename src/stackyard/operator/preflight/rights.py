"""Which privileges a run needs, and on which paths of Proxmox's access tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.desired import Container, Download, Snippet, Vm
from stackyard.operator.preflight.subject import Purpose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import Desired, Guest

__all__ = ["LOCAL_ZONE", "Grant", "Right", "guest_path", "needed"]

# The zone that bridges of nodes are in, for permissions.
LOCAL_ZONE = "localnetwork"

_EVERY_GUEST = ("VM.Allocate", "VM.Audit", "VM.PowerMgmt")
_CONFIG = ("VM.Config.CPU", "VM.Config.Memory", "VM.Config.Disk", "VM.Config.Options")
# What reads the addresses of a guest: since version 9, and before.
_AGENT = {True: ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), False: ("VM.Monitor",)}
_AGENT_SINCE = 9


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One privilege on one path."""

    path: str
    privilege: str

    def __str__(self) -> str:
        return f"{self.privilege} on {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Something that has to be allowed, in one of several ways.

    Attributes:
        ways: Each is enough; all grants of one are needed.
        why: What for.
        is_advised: Whether the run works without, and only less can be checked.
    """

    ways: tuple[tuple[Grant, ...], ...]
    why: str
    is_advised: bool = False


def guest_path(vm_id: int | None) -> str:
    """Return the path of a guest; of one whose id is not known yet, that above all guests."""
    return "/vms" if vm_id is None else f"/vms/{vm_id}"


def needed(
    desired: Desired,
    *,
    zones: Mapping[str, str],
    purpose: Purpose = Purpose.CREATE,
    version: str = "",
) -> Iterator[Right]:
    """Return everything that has to be allowed for a model.

    Args:
        desired: The model, with its snippets.
        zones: The SDN zones of the bridges that are in one.
        purpose: What is done with it.
        version: The version of Proxmox VE.
    """
    major = version.partition(".")[0]
    agent = _AGENT[not major.isdecimal() or int(major) >= _AGENT_SINCE]
    for guest in desired.guests:
        yield from _guest(guest, agent, purpose)
        if purpose is Purpose.CREATE:
            yield from _making(guest, zones)
        if guest.ha is not None:
            yield _right("/", "Sys.Console", f"the high availability of {guest.name}")
    yield from _files(desired, purpose)
    yield from _networks(desired)
    for pool in desired.pools:
        yield _right(f"/pool/{pool.name}", "Pool.Allocate", f"the pool {pool.name}")


def _right(path: str, privilege: str, why: str) -> Right:
    return Right(ways=((Grant(path, privilege),),), why=why)


def _guest(guest: Guest, agent: tuple[str, ...], purpose: Purpose) -> Iterator[Right]:
    """Return what is needed on a guest, where a pool that it is put into gives the same."""
    paths = [guest_path(guest.vm_id), *([f"/pool/{guest.pool}"] if guest.pool is not None else [])]
    wanted: list[tuple[str, ...]] = [(name,) for name in _EVERY_GUEST]
    if purpose is Purpose.CREATE:
        wanted += [(name,) for name in (*_CONFIG, *_own_options(guest))]
        if isinstance(guest, Vm) and guest.agent.enabled:
            wanted.append(agent)
    for names in wanted:
        ways = tuple((Grant(path, name),) for name in names for path in paths)
        yield Right(ways=ways, why=guest.name)


def _own_options(guest: Guest) -> Iterator[str]:
    if guest.nics:
        yield "VM.Config.Network"
    if isinstance(guest, Vm):
        yield "VM.Config.HWType"
        if guest.cloud_init is not None:
            yield "VM.Config.Cloudinit"
        if guest.cloud_init is not None or guest.cdrom is not None:
            yield "VM.Config.CDROM"


def _making(guest: Guest, zones: Mapping[str, str]) -> Iterator[Right]:
    if guest.clone is not None:
        yield _right(guest_path(guest.clone.vm_id), "VM.Clone", f"{guest.name}, its clone")
    if guest.startup is not None:
        yield _right("/", "Sys.Modify", f"the start order of {guest.name}")
    for datastore in sorted(set(_datastores(guest))):
        yield _right(f"/storage/{datastore}", "Datastore.AllocateSpace", f"disks of {guest.name}")
    for nic in guest.nics:
        tagged = f"/{nic.vlan}" if nic.vlan is not None else ""
        path = f"/sdn/zones/{zones.get(nic.bridge, LOCAL_ZONE)}/{nic.bridge}{tagged}"
        yield _right(path, "SDN.Use", f"the network card of {guest.name}")
    if isinstance(guest, Vm):
        mapped = [(f"/mapping/pci/{pci.mapping}", pci.mapping) for pci in guest.pci_devices]
        mapped += [(f"/mapping/usb/{usb.mapping}", usb.mapping) for usb in guest.usb_devices]
        yield from (_right(path, "Mapping.Use", guest.name) for path, name in mapped if name is not None)


def _datastores(guest: Guest) -> Iterator[str]:
    if isinstance(guest, Container):
        if guest.root_disk is not None:
            yield guest.root_disk.datastore
        yield from (mount.volume for mount in guest.mounts if mount.size_gib is not None)
        return
    yield from (disk.datastore for disk in guest.disks)
    yield from (small.datastore for small in (guest.efi_disk, guest.tpm) if small is not None)
    if guest.cloud_init is not None and guest.cloud_init.datastore is not None:
        yield guest.cloud_init.datastore


def _files(desired: Desired, purpose: Purpose) -> Iterator[Right]:
    for file in desired.files:
        path = f"/storage/{file.datastore}"
        seeing = tuple((Grant(path, name),) for name in ("Datastore.Audit", "Datastore.AllocateSpace"))
        yield Right(ways=seeing, why=f"the list of files on {file.datastore}")
        if isinstance(file, Snippet):
            # Where the folder of a datastore is, Proxmox tells only those who may change the datastore.
            yield _right(path, "Datastore.Allocate", f"the snippets of {file.key.partition('/')[0]}")
            continue
        yield _right(path, "Datastore.AllocateTemplate", f"the file {file.key}")
        if isinstance(file, Download) and purpose is Purpose.CREATE:
            alone = (Grant(f"/nodes/{file.node}", "Sys.AccessNetwork"),)
            everywhere = (Grant("/", "Sys.Audit"), Grant("/", "Sys.Modify"))
            yield Right(ways=(alone, everywhere), why=f"the download of {file.key}")


def _networks(desired: Desired) -> Iterator[Right]:
    for interface in (*desired.bridges, *desired.vlans):
        yield _right(f"/nodes/{interface.node}", "Sys.Modify", f"the interface {interface.name}")
    for zone in desired.zones:
        yield _right("/sdn/zones", "SDN.Allocate", f"the zone {zone.name}")
    for vnet in desired.vnets:
        yield _right(f"/sdn/zones/{vnet.zone}", "SDN.Allocate", f"the network {vnet.name}")
    if desired.zones or desired.vnets or desired.subnets:
        yield _right("/sdn", "SDN.Allocate", "applying the networks")
