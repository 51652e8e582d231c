"""Which privileges the calls of a plan need, and on which paths of Proxmox's access tree."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.desired import Container, Download, Snippet, Vm
from stackyard.guard.implied import ImpliedCalls
from stackyard.guard.sources import volumes_of
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.desired import Desired, Guest
    from stackyard.desired.files import AnyFile

__all__ = [
    "LOCAL_ZONE",
    "Grant",
    "Purpose",
    "Right",
    "bridge_path",
    "guest_path",
    "list_plan_rights",
    "list_rights",
]

# The zone that bridges of nodes are in, for permissions.
LOCAL_ZONE = "localnetwork"

_CONFIG = ("VM.Config.CPU", "VM.Config.Memory", "VM.Config.Disk", "VM.Config.Options")
# What reads the addresses of a guest: since version 9, and before.
_AGENT = {True: ("VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted"), False: ("VM.Monitor",)}
_AGENT_SINCE = 9

# What it takes to change an attribute of a guest that is there, as the provider calls it.
_VM_CHANGES: Mapping[str, tuple[str, ...]] = {
    "VM.Config.CPU": ("cpu", "numa"),
    "VM.Config.Memory": ("memory",),
    "VM.Config.Disk": ("disk", "efi_disk", "tpm_state", "boot_order"),
    "VM.Config.Network": ("network_device",),
    "VM.Config.CDROM": ("cdrom",),
    "VM.Config.HWType": (
        *("machine", "scsi_hardware", "acpi", "tablet_device", "hotplug", "vga", "rng", "audio_device"),
        *("watchdog", "smbios", "serial_device", "hostpci", "usb"),
    ),
    "VM.Config.Options": (
        *("name", "description", "tags", "on_boot", "protection", "agent", "bios", "operating_system"),
        *("keyboard_layout", "startup"),
    ),
    "VM.PowerMgmt": ("started",),
    "VM.Migrate": ("node_name",),
}
_CONTAINER_CHANGES: Mapping[str, tuple[str, ...]] = {
    "VM.Config.CPU": ("cpu",),
    "VM.Config.Memory": ("memory",),
    "VM.Config.Disk": ("disk", "mount_point"),
    "VM.Config.Network": ("network_interface", "initialization"),
    "VM.Config.Options": (
        *("description", "tags", "start_on_boot", "startup", "protection", "console", "operating_system"),
        "environment_variables",
    ),
    "VM.PowerMgmt": ("started",),
}
_CLOUD_INIT = ("VM.Config.Cloudinit", "VM.Config.Network")


class Purpose(enum.StrEnum):
    """What the run that follows will do: to take something away, less has to be there."""

    CREATE = "create"
    DESTROY = "destroy"


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
        label: The label of the guest that it is for.
    """

    ways: tuple[tuple[Grant, ...], ...]
    why: str
    is_advised: bool = False
    label: str = ""


def guest_path(vm_id: int | None) -> str:
    """Return the path of a guest; of one whose id is not known yet, that above all guests."""
    return "/vms" if vm_id is None else f"/vms/{vm_id}"


def bridge_path(bridge: str, zones: Mapping[str, str]) -> str:
    """Return the path of a bridge, or of a network of the SDN."""
    return f"/sdn/zones/{zones.get(bridge, LOCAL_ZONE)}/{bridge}"


def list_rights(
    desired: Desired,
    *,
    zones: Mapping[str, str],
    purpose: Purpose = Purpose.CREATE,
    version: str = "",
) -> Iterator[Right]:
    """Return everything that has to be allowed for the whole of a model.

    Args:
        desired: The model, with its snippets.
        zones: The SDN zones of the bridges that are in one.
        purpose: What is done with it.
        version: The version of Proxmox VE.
    """
    if purpose is Purpose.DESTROY:
        for guest in desired.guests:
            for name in ("VM.Allocate", "VM.Audit", "VM.PowerMgmt"):
                yield _on_guest(guest, (name,))
        yield from _files(desired.files, purpose)
        return
    yield from list_plan_rights(_imply_creation(desired), zones=zones, version=version)


def _imply_creation(desired: Desired) -> ImpliedCalls:
    """Return all of a model as something that is to be created."""
    interfaces = (*desired.bridges, *desired.vlans)
    objects = {("network_linux", interface.name, interface.node) for interface in interfaces}
    objects |= {("sdn_zone", zone.name, "") for zone in desired.zones}
    objects |= {("sdn_vnet", vnet.name, vnet.zone) for vnet in desired.vnets}
    objects |= {("sdn_subnet", subnet.cidr, "") for subnet in desired.subnets}
    objects |= {("pool", pool.name, "") for pool in desired.pools}
    return ImpliedCalls(
        desired=desired,
        created=frozenset(guest.key for guest in desired.guests),
        files=frozenset(file.key for file in desired.files),
        objects=frozenset(objects),
    )


def list_plan_rights(
    implied: ImpliedCalls, *, zones: Mapping[str, str], version: str = ""
) -> Iterator[Right]:
    """Return everything that has to be allowed for what a plan does.

    Args:
        implied: What it does.
        zones: The SDN zones of the bridges that are in one.
        version: The version of Proxmox VE.
    """
    major = version.partition(".")[0]
    is_current = not major.isdecimal() or int(major) >= _AGENT_SINCE
    agent = _AGENT[is_current]
    for guest, attributes in implied.touched_guests:
        if attributes is None:
            yield from _list_create_rights(guest, agent, zones)
            yield from _list_protection_rights(guest, is_current=is_current)
        else:
            yield from _list_change_rights(guest, attributes, zones)
    for vm_id, name in implied.destroyed.items():
        yield _right(guest_path(vm_id), "VM.Allocate", f"the removal of {name}")
    for datastore, name, of in sorted(implied.deleted):
        yield _make_remove_right(datastore, name, of)
    yield from _files((file for file in implied.desired.files if file.key in implied.files), Purpose.CREATE)
    yield from _networks(implied.objects)
    yield from _protection(implied.objects, is_current=is_current)


def _right(path: str, privilege: str, why: str, of: Guest | None = None) -> Right:
    return Right(ways=((Grant(path, privilege),),), why=why, label="" if of is None else label(of.key))


def _on_guest(guest: Guest, privileges: tuple[str, ...], why: str = "") -> Right:
    """Return one of some privileges on a guest; a pool that it is in gives the same."""
    paths = [guest_path(guest.vm_id), *([f"/pool/{guest.pool}"] if guest.pool is not None else [])]
    ways = tuple((Grant(path, name),) for name in privileges for path in paths)
    return Right(ways=ways, why=why or guest.name, label=label(guest.key))


def _list_create_rights(guest: Guest, agent: tuple[str, ...], zones: Mapping[str, str]) -> Iterator[Right]:
    for name in ("VM.Allocate", "VM.Audit", *_CONFIG, *_own_options(guest)):
        yield _on_guest(guest, (name,))
    if guest.started and not guest.is_template:
        yield _on_guest(guest, ("VM.PowerMgmt",))
    if isinstance(guest, Vm) and guest.agent.enabled:
        yield _on_guest(guest, agent)
    if guest.clone is not None:
        yield _right(guest_path(guest.clone.vm_id), "VM.Clone", f"{guest.name}, its clone", guest)
    if guest.startup is not None and isinstance(guest, Vm):
        yield _right("/", "Sys.Modify", f"the start order of {guest.name}", guest)
    if guest.ha is not None:
        yield _right("/", "Sys.Console", f"the high availability of {guest.name}", guest)
    for datastore in sorted(set(_datastores(guest))):
        yield _right(f"/storage/{datastore}", "Datastore.AllocateSpace", f"disks of {guest.name}", guest)
    for _, volume in volumes_of(guest):
        yield _make_read_right(volume.partition(":")[0], f"{volume}, which {guest.name} uses", guest)
    yield from _cards(guest, zones)
    yield from _list_mapping_rights(guest)


def _list_change_rights(
    guest: Guest, attributes: frozenset[str], zones: Mapping[str, str]
) -> Iterator[Right]:
    """Return what it takes to change some attributes of a guest that is there."""
    table = _VM_CHANGES if isinstance(guest, Vm) else _CONTAINER_CHANGES
    for privilege, names in table.items():
        changed = sorted(attributes.intersection(names))
        if changed:
            yield _on_guest(guest, (privilege,), f"{', '.join(changed)} of {guest.name}")
    if isinstance(guest, Vm) and "initialization" in attributes:
        yield _on_guest(guest, _CLOUD_INIT, f"initialization of {guest.name}")
    if isinstance(guest, Vm) and guest.startup is not None and "startup" in attributes:
        yield _right("/", "Sys.Modify", f"the start order of {guest.name}", guest)
    if not attributes.isdisjoint(("network_device", "network_interface")):
        yield from _cards(guest, zones)
    if not attributes.isdisjoint(("hostpci", "usb")):
        yield from _list_mapping_rights(guest)


def _list_protection_rights(guest: Guest, *, is_current: bool) -> Iterator[Right]:
    """Return what it takes to give a new guest its firewall and its replications."""
    if guest.firewall is not None:
        yield _on_guest(guest, ("VM.Config.Network",), f"the firewall of {guest.name}")
    if guest.replication:
        yield _replicate(guest_path(guest.vm_id), f"the replication of {guest.name}", is_current=is_current)


def _replicate(path: str, why: str, *, is_current: bool) -> Right:
    # Before version 9, whoever may change storages may also replicate.
    return _right(path, "VM.Replicate", why) if is_current else _right("/storage", "Datastore.Allocate", why)


def _protection(objects: Iterable[tuple[str, str, str]], *, is_current: bool) -> Iterator[Right]:
    """Return what it takes to change the firewalls and replications of guests that are there."""
    for kind, name, _ in sorted(objects):
        owner = name.partition("/" if kind.startswith("firewall_") else "-")[0]
        if not owner.isdecimal():
            continue
        if kind.startswith("firewall_"):
            yield _right(guest_path(int(owner)), "VM.Config.Network", f"the firewall of {owner}")
        elif kind == "replication":
            yield _replicate(guest_path(int(owner)), f"the replication {name}", is_current=is_current)


def _own_options(guest: Guest) -> Iterator[str]:
    if guest.nics:
        yield "VM.Config.Network"
    if isinstance(guest, Vm):
        yield "VM.Config.HWType"
        if guest.cloud_init is not None:
            yield "VM.Config.Cloudinit"
        if guest.cloud_init is not None or guest.cdrom is not None:
            yield "VM.Config.CDROM"


def _cards(guest: Guest, zones: Mapping[str, str]) -> Iterator[Right]:
    for nic in guest.nics:
        tagged = f"/{nic.vlan}" if nic.vlan is not None else ""
        path = f"{bridge_path(nic.bridge, zones)}{tagged}"
        yield _right(path, "SDN.Use", f"the network card of {guest.name}", guest)


def _list_mapping_rights(guest: Guest) -> Iterator[Right]:
    if isinstance(guest, Vm):
        mapped = [(f"/mapping/pci/{pci.mapping}", pci.mapping) for pci in guest.pci_devices]
        mapped += [(f"/mapping/usb/{usb.mapping}", usb.mapping) for usb in guest.usb_devices]
        paths = [path for path, name in mapped if name is not None]
        yield from (_right(path, "Mapping.Use", guest.name, guest) for path in paths)


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


def _make_read_right(datastore: str, why: str, of: Guest | None = None) -> Right:
    names = ("Datastore.Audit", "Datastore.AllocateSpace")
    ways = tuple((Grant(f"/storage/{datastore}", name),) for name in names)
    return Right(ways=ways, why=why, label="" if of is None else label(of.key))


def _make_remove_right(datastore: str, name: str, of: str) -> Right:
    """Return what it takes to remove a file: whoever may write files onto a datastore may not remove any."""
    grant = Grant(f"/storage/{datastore}", "Datastore.Allocate")
    return Right(ways=((grant,),), why=f"the removal of {name}", label=of)


def _files(files: Iterable[AnyFile], purpose: Purpose) -> Iterator[Right]:
    for file in files:
        path = f"/storage/{file.datastore}"
        yield _make_read_right(file.datastore, f"the list of files on {file.datastore}")
        if isinstance(file, Snippet):
            # Where the folder of a datastore is, Proxmox tells only those who may change the datastore.
            yield _right(path, "Datastore.Allocate", f"the snippets of {file.key.partition('/')[0]}")
            continue
        if purpose is Purpose.DESTROY:
            if not (isinstance(file, Download) and file.is_shared):
                yield _make_remove_right(file.datastore, file.key, label(file.key))
            continue
        template = (Grant(path, "Datastore.AllocateTemplate"),)
        yield Right(ways=(template,), why=f"the file {file.key}", label=label(file.key))
        if isinstance(file, Download):
            alone = (Grant(f"/nodes/{file.node}", "Sys.AccessNetwork"),)
            everywhere = (Grant("/", "Sys.Audit"), Grant("/", "Sys.Modify"))
            why = f"the download of {file.key}"
            yield Right(ways=(alone, everywhere), why=why, label=label(file.key))


def _networks(objects: Iterable[tuple[str, str, str]]) -> Iterator[Right]:
    found = sorted(objects)
    for kind, name, place in found:
        if kind.startswith("network_"):
            yield _right(f"/nodes/{place}", "Sys.Modify", f"the interface {name}")
        elif kind.startswith("sdn_zone"):
            yield _right("/sdn/zones", "SDN.Allocate", f"the zone {name}")
        elif kind == "sdn_vnet":
            yield _right(f"/sdn/zones/{place}", "SDN.Allocate", f"the network {name}")
        elif kind == "pool":
            yield _right(f"/pool/{name}", "Pool.Allocate", f"the pool {name}")
    if any(kind.startswith("sdn_") for kind, _, _ in found):
        yield _right("/sdn", "SDN.Allocate", "applying the networks")
