"""The state of a VM as it is: from calls that all VMs share, and its own configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.drives import format_of, is_disk
from stackyard.fields.properties import parse
from stackyard.provider.guests import VM, find_guest, locate_guest
from stackyard.provider.resources.vm.basics import read_basics, read_cpu, read_memory, read_operating_system
from stackyard.provider.resources.vm.blocks import PriorState, is_managed
from stackyard.provider.resources.vm.devices import read_devices
from stackyard.provider.resources.vm.disks import by_interface, order_of, read_disk
from stackyard.provider.resources.vm.drives import read_cdrom, read_efi, read_tpm
from stackyard.provider.resources.vm.initialization import read_initialization
from stackyard.provider.resources.vm.network import NO_ADDRESSES, read_network
from stackyard.provider.resources.vm.passthrough import read_passthrough
from stackyard.provider.resources.vm.power import addresses
from stackyard.provider.values import UNKNOWN, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.guests import Guest
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["describe_vm", "read_vm", "refresh"]

# Long enough for all reads of one plan; every write and every command of the engine makes it older.
_SHARED_S = 5.0
# Where a volume's name has no suffix, its storage keeps blocks, not files.
_BLOCK_STORAGES = frozenset(("lvm", "lvmthin", "zfspool", "zfs", "rbd", "iscsi", "iscsidirect"))


async def refresh(work: Work, state: Object) -> Object | None:
    """Return the state as it is now; None when the VM is gone."""
    vm_id = int(state["id"])
    await work.session.journal.confirm(work.type_name, vm_id)
    guest = await locate_guest(work, str(state["node_name"]), vm_id, VM)
    if guest is None:
        return None
    found = await find_guest(work, vm_id, VM) or {}
    is_running = await guest.is_listed_running()
    try:
        config = await guest.config()
    except proxmox.MissingError:
        return None
    known = {**state, "pool_id": found.get("pool") or "", "started": is_running}
    if known.get("template"):
        known["started"] = state.get("started")
    return await read_vm(guest, known, config, wait=False)


async def read_vm(guest: Guest, known: Object, config: Mapping[str, Any], *, wait: bool) -> Object:
    """Return the state of a VM.

    Args:
        guest: The VM.
        known: What the state says, or the plan: `started` and `pool_id` are right in it.
        config: Its configuration.
        wait: Whether to wait for addresses.
    """
    shown = PriorState(known=known, is_clone=bool(known.get("clone")))
    described = describe_vm(config, shown, guest.vm_id)
    before = by_interface(known.get("disk"))
    for disk in described.get("disk") or ():
        await _complete_format(guest, disk, before.get(disk["interface"]))
    for efi in described.get("efi_disk") or ():
        efi["file_format"] = await _efi_format(guest, config)
    place = {"id": str(guest.vm_id), "vm_id": guest.vm_id, "node_name": guest.node}
    state = {**known, **described, **place}
    _resolve_uuid(state, config)
    if known.get("started") and not state.get("template"):
        return state | await addresses(guest, state, config, wait=wait)
    return state | NO_ADDRESSES


def describe_vm(config: Mapping[str, Any], shown: PriorState, vm_id: int) -> Object:
    """Return the attributes of a configuration; a format that no text tells is left out."""
    return {
        **read_basics(config, shown),
        **read_cpu(config, shown),
        **read_memory(config, shown),
        **read_operating_system(config, shown),
        **read_devices(config, shown),
        **read_passthrough(config, shown),
        **read_cdrom(config, shown, vm_id),
        **read_efi(config, shown),
        **read_tpm(config, shown),
        **read_initialization(config, shown, vm_id),
        **read_network(config),
        **_read_disks(config, shown, vm_id),
    }


def _resolve_uuid(state: Object, config: Mapping[str, Any]) -> None:
    """Put the identity of a clone into its block: nothing else of it is read there."""
    block = known_block(state, "smbios")
    if block is not None and block.get("uuid") in (None, UNKNOWN, ""):
        uuid = parse(config.get("smbios1", ""), "uuid").get("uuid", "")
        state["smbios"] = [{**block, "uuid": uuid}]


def _read_disks(config: Mapping[str, Any], shown: PriorState, vm_id: int) -> Object:
    if not is_managed(shown, "disk"):
        return {}
    known = by_interface(shown.known.get("disk"))
    found = {
        key: read_disk(key, config[key], known.get(key))
        for key in sorted(config, key=order_of)
        if is_disk(key, config[key], vm_id)
    }
    first = [found.pop(interface) for interface in known if interface in found]
    # The disks that a clone has from its template are not the configuration's to remove.
    return {"disk": first if shown.is_clone else [*first, *found.values()]}


async def _complete_format(guest: Guest, disk: Object, known: Object | None) -> None:
    if disk["file_format"] or not disk["datastore_id"]:
        return
    before = known or {}
    if before.get("path_in_datastore") == disk["path_in_datastore"] and before.get("file_format"):
        disk["file_format"] = before["file_format"]
        return
    volume = f"{disk['datastore_id']}:{disk['path_in_datastore']}"
    disk["file_format"] = await _format_of(guest, volume)


async def _efi_format(guest: Guest, config: Mapping[str, Any]) -> str | None:
    found = parse(config["efidisk0"], "file")
    return format_of(found) or await _format_of(guest, found.get("file", ""))


async def _format_of(guest: Guest, volume: str) -> str | None:
    """Return the format of a volume, whose name does not tell it; None when there is no such volume."""
    work, storage = guest.work, volume.partition(":")[0]
    types = work.session.storage_types
    if storage not in types:
        for one in await work.client.get("/storage", max_age_s=_SHARED_S):
            types[str(one["storage"])] = str(one["type"])
    if types.get(storage) in _BLOCK_STORAGES:
        return "raw"
    path = f"/nodes/{proxmox.quote(guest.node)}/storage/{proxmox.quote(storage)}/content"
    try:
        found = await work.client.get(f"{path}/{proxmox.quote(volume)}")
    except proxmox.RefusedError:
        # The volume is gone; the VM still names it.
        return None
    return str(found["format"]) if found.get("format") else None
