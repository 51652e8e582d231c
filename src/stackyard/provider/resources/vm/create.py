"""Making a VM: from nothing or by cloning, then everything that follows, in steps that can be repeated."""

from __future__ import annotations

import contextlib
import uuid
from typing import TYPE_CHECKING, Any

from stackyard.provider.guests import VM, CreatedGuest, Creation, Guest, left_on_failure, make_once
from stackyard.provider.guests.guest import seconds
from stackyard.provider.resources.vm import power
from stackyard.provider.resources.vm.clone import clone_vm
from stackyard.provider.resources.vm.disks import by_interface
from stackyard.provider.resources.vm.drives import FIRMWARE, cdrom_params
from stackyard.provider.resources.vm.images import (
    disk_text,
    grow,
    import_on_node,
    needs_node,
    require_larger,
    source_of,
)
from stackyard.provider.resources.vm.initialization import cloud_init_drive, drive_interface
from stackyard.provider.resources.vm.network import keep_addresses
from stackyard.provider.resources.vm.params import boot_text, whole_params
from stackyard.provider.resources.vm.read import read_vm
from stackyard.provider.time_limits import time_limit
from stackyard.provider.values import UNKNOWN, known_block

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["create"]


async def create(work: Work, planned: Object) -> Object:
    """Make a VM as planned and return its state."""
    wanted = _identify(planned)
    with contextlib.ExitStack() as leaving:
        async with _limit(wanted) as restart:
            if known_block(wanted, "clone") is not None:
                # Others that are cloned before it do not take its time.
                guest, made = await clone_vm(work, wanted, on_turn=restart)
            else:
                guest, made = await _make_new(work, wanted)
            leaving.callback(work.session.journal.leave, made.entry)
            if made.is_taken_over and await guest.is_running() and await guest.list_pending():
                await power.restart(guest, wanted)
            await _settle_power(guest, wanted)
        return await _read_back(guest, {**wanted, "id": str(guest.vm_id), "vm_id": guest.vm_id})


def _limit(planned: Object) -> AbstractAsyncContextManager[Callable[[], None]]:
    """Give a VM the time that it has until it is made and started; its agent has a time of its own."""
    setting = "timeout_create" if known_block(planned, "clone") is None else "timeout_clone"
    which = planned.get("name") or planned.get("vm_id")
    what = f"The creation of VM {which}" if isinstance(which, (str, int)) else "The creation of a VM"
    return time_limit(seconds(planned, setting), what=what, setting=setting)


def _identify(planned: Object) -> Object:
    """Return a plan whose own identity is chosen, where the plan leaves it open."""
    block = known_block(planned, "smbios")
    if block is None or block.get("uuid") not in (None, "", UNKNOWN):
        return planned
    return {**planned, "smbios": [{**block, "uuid": str(uuid.uuid4())}]}


async def _make_new(work: Work, planned: Object) -> tuple[Guest, CreatedGuest]:
    node, timeout_s = str(planned["node_name"]), seconds(planned, "timeout_create")
    await require_larger(work, node, by_interface(planned.get("disk")).values())

    async def send(entry: Entry) -> Any:
        params = {
            **whole_params(planned, entry.vm_id),
            **_drives(planned),
            "vmid": entry.vm_id,
            "vmgenid": entry.token,
            "pool": planned.get("pool_id") or None,
        }
        return await work.client.post(f"/nodes/{node}/qemu", params)

    creation = Creation(kind=VM, node=node, worker=node, send=send, timeout_s=timeout_s)
    made = await make_once(work, planned, creation)
    guest = made.guest
    work.keep({**planned, "id": str(guest.vm_id), "vm_id": guest.vm_id, "node_name": guest.node})
    with left_on_failure(work, made.entry):
        await _complete(guest, planned, is_taken_over=made.is_taken_over)
    return guest, made


def _drives(planned: Object) -> dict[str, str]:
    """Return the drives of a new VM that Proxmox makes itself."""
    drives: dict[str, str | None] = {
        interface: disk_text(disk)
        for interface, disk in by_interface(planned.get("disk")).items()
        if not needs_node(disk)
    }
    drives |= {key: text(planned) for _, key, text in FIRMWARE}
    block = known_block(planned, "initialization")
    if block is not None:
        drives[drive_interface(block)] = cloud_init_drive(block)
    found = {key: text for key, text in drives.items() if text is not None}
    return found | cdrom_params(planned)


async def _complete(guest: Guest, planned: Object, *, is_taken_over: bool) -> None:
    """Do what the first call leaves: images that lie on the node, and sizes."""
    disks = list(by_interface(planned.get("disk")).values())
    if not is_taken_over and not any(source_of(disk) for disk in disks):
        return
    timeout_s = seconds(planned, "timeout_create")
    config = await guest.config()
    if is_taken_over:
        config = await _repeat(guest, planned, config, timeout_s)
    on_node = [disk for disk in disks if needs_node(disk) and disk["interface"] not in config]
    for disk in on_node:
        await import_on_node(guest, disk)
    if on_node:
        config = await guest.config()
    if is_taken_over:
        await _tidy(guest, planned, config)
    for disk in disks:
        if source_of(disk) or is_taken_over:
            await grow(guest, disk, config, timeout_s=timeout_s)


async def _repeat(
    guest: Guest, planned: Object, config: Mapping[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Bring a VM that another run made to what is planned now, but for images that lie on the node."""
    drives = {key: text for key, text in _drives(planned).items() if key not in config}
    params = {**whole_params(keep_addresses(planned, config), guest.vm_id), **drives}
    # It may name a disk that is still to be imported: Proxmox refuses an order of what is not there.
    params.pop("boot", None)
    leftovers = [key for key in config if key.startswith("unused")]
    await guest.set(params, delete=leftovers, allocates=drives, timeout_s=timeout_s)
    return await guest.config()


async def _tidy(guest: Guest, planned: Object, config: Mapping[str, Any]) -> None:
    """Set the order of booting once all disks are there, and remove what an import of the other run left."""
    boot = boot_text(planned)
    leftovers = [key for key in config if key.startswith("unused")]
    await guest.set({"boot": boot if boot != config.get("boot") else None}, delete=leftovers)


async def _settle_power(guest: Guest, planned: Object) -> None:
    """Make it a template, or start it."""
    if planned.get("template"):
        await power.make_template(guest, planned)
    elif planned.get("started"):
        await power.start(guest, planned)
        if planned.get("reboot"):
            await power.restart(guest, planned)


async def _read_back(guest: Guest, planned: Object) -> Object:
    """Return the state that came of it."""
    config = await guest.config()
    known = {**planned, "node_name": guest.node, "pool_id": planned.get("pool_id") or ""}
    state = await read_vm(guest, known, config, wait=True)
    guest.work.keep(state)
    return state
