"""Cloning: one at a time to a storage, over a node if need be, then changed to what is planned."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.fields.drives import storage_of
from stackyard.fields.properties import parse
from stackyard.provider.guests import (
    VM,
    CreatedGuest,
    Creation,
    Guest,
    left_on_failure,
    make_once,
    mark_description,
)
from stackyard.provider.guests.creation import ATTEMPTS
from stackyard.provider.guests.guest import seconds
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.vm.disks import by_interface, render_changed
from stackyard.provider.resources.vm.drives import FIRMWARE, cdrom_params
from stackyard.provider.resources.vm.images import disk_text, grow, import_on_node, needs_node
from stackyard.provider.resources.vm.initialization import cloud_init_drive, drive_interface, find_drive
from stackyard.provider.resources.vm.migrate import migrate
from stackyard.provider.resources.vm.network import keep_addresses
from stackyard.provider.resources.vm.params import clone_params, clone_unset
from stackyard.provider.values import known_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["CloneRequest", "bring_to_target", "clone_vm", "make_clone", "move_disk"]

_DRIVE_PREFIXES = ("ide", "sata", "scsi", "virtio", "efidisk", "tpmstate")


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneRequest:
    """A clone that is to be made.

    Attributes:
        source: The VM that is cloned.
        target: The node that has the clone in the end.
        storage: The storage that its disks go to; those of its source when empty.
        description: What it says of itself while it is made; a token follows.
        params: More parameters of the call.
        timeout_s: How long it may take.
        attempts: How often the call is sent, where locks or lost answers are in its way.
        on_turn: Called when no other clone is in its way any more.
    """

    source: Guest
    target: str
    storage: str
    description: str
    params: Mapping[str, Any]
    timeout_s: float
    attempts: int = ATTEMPTS
    on_turn: Callable[[], None] = lambda: None


async def make_clone(work: Work, planned: Object, request: CloneRequest) -> CreatedGuest:
    """Clone a VM exactly once, on the node of its source where it has to be moved from there.

    Args:
        work: The operation.
        planned: What is to be made; its `vm_id` or `name` is how another run recognises it.
        request: From what and where.
    """
    source, target = request.source, request.target
    storages = _storages(await source.config())
    over = source.node != target and not await _all_shared(work, source.node, storages)
    # Proxmox does not clone to another node unless everything is shared: there it is cloned here and moved.
    made_on = source.node if over else target

    async def send(entry: Entry) -> Any:
        params = {
            **request.params,
            "newid": entry.vm_id,
            "storage": request.storage or None,
            "description": mark_description(request.description, entry.token),
            "target": target if made_on == target and source.node != target else None,
        }
        return await work.client.post(f"{source.path}/clone", params)

    creation = Creation(
        kind=VM,
        node=made_on,
        worker=source.node,
        send=send,
        timeout_s=request.timeout_s,
        attempts=request.attempts,
    )
    async with _queue(work, source.node, {request.storage} if request.storage else storages):
        request.on_turn()
        return await make_once(work, planned, creation)


async def bring_to_target(made: CreatedGuest, request: CloneRequest) -> Guest:
    """Move a clone from the node of its source to its own, if it is not there."""
    guest = made.guest
    if guest.node == request.target:
        return guest
    moved = await migrate(
        guest, request.target, timeout_s=request.timeout_s, storage=request.storage, setting="timeout_clone"
    )
    await guest.work.session.journal.change(made.entry, node=request.target)
    return moved


async def clone_vm(work: Work, planned: Object, *, on_turn: Callable[[], None]) -> tuple[Guest, CreatedGuest]:
    """Clone a VM and change the clone to what is planned.

    Args:
        work: The operation.
        planned: What is to be.
        on_turn: Called when no other clone is in its way any more.
    """
    block = known_block(planned, "clone") or {}
    target, timeout_s = str(planned["node_name"]), seconds(planned, "timeout_clone")
    request = CloneRequest(
        source=Guest(work=work, node=str(block.get("node_name") or target), vm_id=int(block["vm_id"])),
        target=target,
        storage=str(block.get("datastore_id") or ""),
        description=str(planned.get("description") or ""),
        params={
            "full": bool(block.get("full", True)),
            "name": planned.get("name") or None,
            "pool": planned.get("pool_id") or None,
        },
        timeout_s=timeout_s,
        attempts=max(ATTEMPTS, int(block.get("retries") or 1)),
        on_turn=on_turn,
    )
    made = await make_clone(work, planned, request)
    guest = made.guest
    work.keep({**planned, "id": str(guest.vm_id), "vm_id": guest.vm_id, "node_name": guest.node})
    with left_on_failure(work, made.entry):
        guest = await bring_to_target(made, request)
        await _configure(guest, planned, made, timeout_s)
    return guest, made


@contextlib.asynccontextmanager
async def _queue(work: Work, node: str, storages: set[str]) -> AsyncIterator[None]:
    """Wait until nobody of us clones to one of these storages."""
    async with contextlib.AsyncExitStack() as held:
        for storage in sorted(storages):
            await held.enter_async_context(work.session.clones.turn(node, storage))
        yield


def _storages(config: Mapping[str, Any]) -> set[str]:
    found = {storage_of(value) for key, value in config.items() if key.startswith(_DRIVE_PREFIXES)}
    return found - {""}


async def _all_shared(work: Work, node: str, storages: set[str]) -> bool:
    listed = await work.client.get(f"/nodes/{proxmox.quote(node)}/storage", max_age_s=5.0)
    shared = {str(one["storage"]) for one in listed if str(one.get("shared", 0)) == "1"}
    return storages <= shared


async def _configure(guest: Guest, planned: Object, made: CreatedGuest, timeout_s: float) -> None:
    config = await guest.config()
    drives, detached = _new_drives(guest, planned, config)
    if detached:
        await guest.set({}, delete=detached)
    # What an earlier run has given it stays; before that, its cards are those of the source.
    wanted = keep_addresses(planned, config) if config.get("vmgenid") == made.entry.token else planned
    params = {
        **clone_params(wanted, guest.vm_id),
        **cdrom_params(planned),
        # From here on the clone carries the token there, and the description that is asked for.
        "description": planned.get("description") or None,
        "vmgenid": made.entry.token,
    }
    await guest.set(params, delete=["description", *clone_unset(planned, config)])
    await guest.set(drives, allocates=drives, timeout_s=timeout_s)
    await _adjust_disks(guest, planned, timeout_s)
    if made.is_taken_over:
        # What an import on the node left when it was cut off.
        await guest.set({}, delete=[key for key in await guest.config() if key.startswith("unused")])


def _new_drives(guest: Guest, planned: Object, config: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the drives that the clone has to get, and those that go before."""
    drives: dict[str, str] = {}
    detached: list[str] = []
    for _, key, text in FIRMWARE:
        new = text(planned)
        if new is not None and key not in config:
            drives[key] = new
    block = known_block(planned, "initialization")
    if block is not None:
        has = find_drive(config, guest.vm_id)
        wanted = drive_interface(block, has)
        if has != wanted or storage_of(config[has]) != block.get("datastore_id"):
            detached += [key for key in {has, wanted} if key and key in config]
            drives[wanted] = cloud_init_drive(block)
    for interface, disk in by_interface(planned.get("disk")).items():
        if interface not in config and not needs_node(disk):
            drives[interface] = disk_text(disk)
    return drives, detached


async def _adjust_disks(guest: Guest, planned: Object, timeout_s: float) -> None:
    """Give the disks of a clone their options, place and size."""
    disks = by_interface(planned.get("disk"))
    firmware = {key: block for name, key, _ in FIRMWARE if (block := known_block(planned, name)) is not None}
    if not disks and not firmware:
        return
    config = await guest.config()
    for interface, disk in disks.items():
        if interface not in config:
            await import_on_node(guest, disk)
            config = await guest.config()
        text = render_changed(str(config[interface]), disk)
        if text is not None:
            await guest.set({interface: text})
        await move_disk(guest, interface, str(disk.get("datastore_id") or ""), config, timeout_s=timeout_s)
        await grow(guest, disk, config, timeout_s=timeout_s)
    for key, block in firmware.items():
        if key in config:
            await move_disk(guest, key, str(block.get("datastore_id") or ""), config, timeout_s=timeout_s)
    _check_firmware(firmware.get("efidisk0"), config)


def _check_firmware(efi: Object | None, config: Mapping[str, Any]) -> None:
    has = parse(config.get("efidisk0", ""), "file").get("efitype", "2m")
    if efi is not None and config.get("efidisk0") and efi.get("type") not in (None, has):
        raise AttributeValueError(
            f"The source of the clone has an EFI disk of type {has}, which cannot become {efi['type']}.",
            ("efi_disk", 0, "type"),
        )


async def move_disk(
    guest: Guest, key: str, storage: str, config: Mapping[str, Any], *, timeout_s: float
) -> bool:
    """Move a disk to another storage, if it is not there; tell whether it had to be."""
    if not storage or storage_of(config[key]) == storage:
        return False

    async def is_moved() -> bool:
        return storage_of((await guest.config()).get(key, "")) == storage

    params = {"disk": key, "storage": storage, "delete": True}
    await guest.run_unless_done("move_disk", params, is_done=is_moved, timeout_s=timeout_s)
    return True
