"""Changing a VM in place: where it is, what it has, its disks, and whether it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import is_disk
from stackyard.fields.properties import parse
from stackyard.provider.guests.guest import Guest, seconds
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.pool import move_guest
from stackyard.provider.resources.vm import power
from stackyard.provider.resources.vm.clone import move_disk
from stackyard.provider.resources.vm.disks import by_interface, render_changed
from stackyard.provider.resources.vm.drives import CDROM_INTERFACE, FIRMWARE, cdrom_params
from stackyard.provider.resources.vm.images import disk_text, grow, import_on_node, needs_node
from stackyard.provider.resources.vm.initialization import (
    cloud_init_drive,
    drive_interface,
    find_drive,
    initialization_params,
)
from stackyard.provider.resources.vm.migrate import migrate
from stackyard.provider.resources.vm.params import boot_text, whole_params
from stackyard.provider.resources.vm.read import read_vm
from stackyard.provider.values import UNKNOWN, get_known, known_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["update"]

# Bound to the hardware of one node: gone before the VM leaves it.
_NODE_BOUND = ("hostpci", "usb", "numa")


@dataclass(slots=True)
class _Change:
    """An update under way.

    Attributes:
        guest: The VM.
        prior: What the state says.
        planned: What is to be.
        was_stopped: Whether we have stopped it on the way.
        sent: The keys that were set or unset.
        needs_restart: Whether it has to be restarted whatever is pending.
    """

    guest: Guest
    prior: Object
    planned: Object
    was_stopped: bool = False
    sent: set[str] = field(default_factory=set)
    needs_restart: bool = False

    def changed(self, *names: str) -> bool:
        return any(self.prior.get(name) != self.planned.get(name) for name in names)

    async def set(self, params: dict[str, Any], *, delete: list[str], allocates: set[str]) -> None:
        self.sent |= params.keys() | set(delete)
        await self.guest.set(params, delete=delete, allocates=allocates)

    async def need_stopped(self, why: str) -> None:
        """Stop the VM, if it runs."""
        if self.was_stopped or not await self.guest.is_running():
            return
        if not self.planned.get("reboot_after_update", True):
            raise AttributeValueError(
                f"VM {self.guest.vm_id} has to be stopped to {why}, and `reboot_after_update` is false.",
                ("reboot_after_update",),
            )
        await power.stop(self.guest, self.planned)
        self.was_stopped = True


async def update(work: Work, prior: Object, planned: Object) -> Object:
    """Change a VM to what is planned and return its state."""
    guest = Guest(work=work, node=str(prior["node_name"]), vm_id=int(prior["id"]))
    change = _Change(guest=guest, prior=prior, planned=planned)
    await _move_pool(change)
    await _move_node(change)
    config = await change.guest.config()
    await _change_firmware_place(change, config)
    await _change_cloud_init_drive(change, config)
    await _change_disk_places(change, config)
    await _change_config(change, config)
    await _become_template(change)
    await _regenerate_cloud_init(change)
    await _settle_power(change)
    state = await read_vm(
        change.guest,
        {**planned, "pool_id": _pool(change)},
        await change.guest.config(),
        wait=change.changed("started", "network_device", "agent") or change.was_stopped,
    )
    work.keep(state)
    return state


def _pool(change: _Change) -> str:
    return str(change.planned.get("pool_id") or change.prior.get("pool_id") or "")


async def _move_pool(change: _Change) -> None:
    old, new = change.prior.get("pool_id") or "", change.planned.get("pool_id") or ""
    if not new or old == new:
        return
    await move_guest(change.guest.work, change.guest.vm_id, new)


async def _move_node(change: _Change) -> None:
    target = str(change.planned["node_name"])
    if target == change.guest.node:
        return
    bound = [key for key in await change.guest.config() if _is_bound(key)]
    kept = {key for key in whole_params(change.planned, change.guest.vm_id) if _is_bound(key)}
    gone = [key for key in bound if key not in kept or change.changed(*_NODE_BOUND)]
    if gone:
        await change.need_stopped("take away devices of its node before it moves")
        await change.guest.set({}, delete=gone)
    change.guest = await migrate(change.guest, target, timeout_s=seconds(change.planned, "timeout_migrate"))
    change.guest.work.keep({**change.prior, "node_name": target})


def _is_bound(key: str) -> bool:
    return key.startswith(_NODE_BOUND) and key[-1].isdigit()


async def _change_firmware_place(change: _Change, config: dict[str, Any]) -> None:
    for name, key, _ in FIRMWARE:
        block = known_block(change.planned, name)
        if block is None or key not in config or not change.changed(name):
            continue
        storage = str(block.get("datastore_id") or "")
        if storage == str(config[key]).partition(":")[0]:
            continue
        if name == "tpm_state":
            await change.need_stopped("move the state of its TPM")
        await move_disk(
            change.guest, key, storage, config, timeout_s=seconds(change.planned, "timeout_move_disk")
        )
        config[key] = (await change.guest.config())[key]


async def _change_cloud_init_drive(change: _Change, config: dict[str, Any]) -> None:
    block, has = known_block(change.planned, "initialization"), find_drive(config, change.guest.vm_id)
    if not change.changed("initialization"):
        return
    change.needs_restart = True
    if block is None:
        if has:
            await change.need_stopped("take away the drive of cloud-init")
            await change.set({}, delete=[has], allocates=set())
        return
    wanted = drive_interface(block, has)
    if has == wanted and not _drive_differs(change, block, str(config[has])):
        return
    await change.need_stopped("move the drive of cloud-init")
    gone = [key for key in {has, wanted} if key and key in config]
    await change.guest.set({}, delete=gone)
    await change.set({wanted: cloud_init_drive(block)}, delete=[], allocates={wanted})


def _drive_differs(change: _Change, block: Object, text: str) -> bool:
    if text.partition(":")[0] != block.get("datastore_id"):
        return True
    before = known_block(change.prior, "initialization") or {}
    wanted = get_known(block, "file_format")
    return bool(wanted) and wanted != before.get("file_format")


async def _change_disk_places(change: _Change, config: dict[str, Any]) -> None:
    """Move and grow the disks that are there: before their options change, which name their volume."""
    if not change.changed("disk"):
        return
    timeout_s = seconds(change.planned, "timeout_move_disk")
    for interface, disk in by_interface(change.planned.get("disk")).items():
        if interface not in config:
            continue
        storage = str(disk.get("datastore_id") or "")
        if await move_disk(change.guest, interface, storage, config, timeout_s=timeout_s):
            config[interface] = (await change.guest.config())[interface]
        await grow(change.guest, disk, config, timeout_s=timeout_s)


async def _change_config(change: _Change, config: dict[str, Any]) -> None:
    planned = _identify(change.planned, config)
    old = whole_params(change.prior, change.guest.vm_id)
    new = whole_params(planned, change.guest.vm_id)
    params = {key: value for key, value in new.items() if old.get(key) != value}
    unset = [key for key in old if key not in new and key in config]
    if _loses_password(change) and "cipassword" in config:
        unset.append("cipassword")
    if not get_known(change.planned, "boot_order") or not change.changed("boot_order"):
        params.pop("boot", None)
        unset = [key for key in unset if key != "boot"]
    if not _upgrade_changed(change):
        params.pop("ciupgrade", None)
    drives, allocates, gone = _drive_changes(change, config)
    await change.set(params | drives, delete=unset + gone, allocates=allocates)
    if cdrom_params(change.planned).keys() & (drives.keys() - config.keys()):
        # Proxmox puts a new CD drive into the boot order.
        await change.set({"boot": boot_text(change.planned)}, delete=[], allocates=set())
    for interface in sorted(allocates):
        await _grow_new(change, interface)
    await _import_new(change, config)


def _loses_password(change: _Change) -> bool:
    """Tell whether a password goes: it is shown masked, so that it is not among what the state says."""
    before, after = (
        known_block(known_block(state, "initialization") or {}, "user_account") or {}
        for state in (change.prior, change.planned)
    )
    return bool(before.get("password")) and not after.get("password")


def _identify(planned: Object, config: Mapping[str, Any]) -> Object:
    block = known_block(planned, "smbios")
    if block is None or block.get("uuid") not in (None, "", UNKNOWN):
        return planned
    uuid = parse(config.get("smbios1", ""), "uuid").get("uuid")
    return {**planned, "smbios": [{**block, "uuid": uuid}]}


def _upgrade_changed(change: _Change) -> bool:
    before = known_block(change.prior, "initialization") or {}
    after = known_block(change.planned, "initialization") or {}
    return bool(before.get("upgrade") != after.get("upgrade"))


def _drive_changes(change: _Change, config: Mapping[str, Any]) -> tuple[dict[str, str], set[str], list[str]]:
    """Return drives to set, those among them that make a volume, and those to take away."""
    drives, allocates, gone = _disk_changes(change, config)
    for name, key, text in FIRMWARE:
        if not change.changed(name):
            continue
        new = text(change.planned)
        if new is None and key in config:
            gone.append(key)
        elif new is not None and (key not in config or _firmware_differs(name, change)):
            drives[key] = new
            allocates.add(key)
    if change.changed("cdrom"):
        before = known_block(change.prior, "cdrom") or {}
        old, wanted = str(before.get("interface") or CDROM_INTERFACE), cdrom_params(change.planned)
        drives |= wanted
        if old not in wanted and old in config and before:
            gone.append(old)
    return drives, allocates, gone


def _firmware_differs(name: str, change: _Change) -> bool:
    before, after = known_block(change.prior, name) or {}, known_block(change.planned, name) or {}
    return bool(before.get("pre_enrolled_keys") != after.get("pre_enrolled_keys"))


def _disk_changes(change: _Change, config: Mapping[str, Any]) -> tuple[dict[str, str], set[str], list[str]]:
    drives: dict[str, str] = {}
    allocates: set[str] = set()
    if not change.changed("disk"):
        return drives, allocates, []
    wanted = by_interface(change.planned.get("disk"))
    for interface, disk in wanted.items():
        if interface not in config:
            if not needs_node(disk):
                drives[interface] = disk_text(disk)
                allocates.add(interface)
            continue
        text = render_changed(str(config[interface]), disk)
        if text is not None:
            drives[interface] = text
    vm_id = change.guest.vm_id
    # Only what the plan has shown goes: a clone also has the disks of its template.
    seen = by_interface(change.prior.get("disk"))
    left = [key for key in seen if key in config and key not in wanted]
    gone = [key for key in left if is_disk(key, config[key], vm_id)]
    boots = [key for key in gone if key in (change.planned.get("boot_order") or ())]
    if boots:
        raise AttributeValueError(
            f"Disk {boots[0]} of VM {vm_id} is in its boot order; take it out of `boot_order` first.",
            ("disk",),
        )
    return drives, allocates, gone


async def _grow_new(change: _Change, interface: str) -> None:
    disk = by_interface(change.planned.get("disk")).get(interface)
    if disk is not None and (disk.get("import_from") or disk.get("file_id")):
        config = await change.guest.config()
        await grow(change.guest, disk, config, timeout_s=seconds(change.planned, "timeout_create"))


async def _import_new(change: _Change, config: Mapping[str, Any]) -> None:
    if not change.changed("disk"):
        return
    for interface, disk in by_interface(change.planned.get("disk")).items():
        if interface not in config and needs_node(disk):
            await import_on_node(change.guest, disk)
            await _grow_new(change, interface)


async def _become_template(change: _Change) -> None:
    if not change.planned.get("template") or change.prior.get("template"):
        return
    await change.need_stopped("become a template")
    await power.make_template(change.guest, change.planned)


async def _regenerate_cloud_init(change: _Change) -> None:
    has_some = bool(initialization_params(change.planned, with_upgrade=False))
    if change.changed("initialization") and has_some and not change.planned.get("template"):
        await change.guest.work.client.put(f"{change.guest.path}/cloudinit")


async def _settle_power(change: _Change) -> None:
    """Start, stop or restart it: as planned, and where something waits for a restart."""
    planned, guest = change.planned, change.guest
    if planned.get("template"):
        return
    wants = bool(planned.get("started"))
    if change.was_stopped:
        if wants:
            await power.start(guest, planned)
        return
    runs = await guest.is_running()
    if wants and not runs:
        await power.start(guest, planned)
    elif not wants and runs and change.changed("started"):
        await power.stop(guest, planned)
        change.was_stopped = True
    elif wants and runs and (change.needs_restart or await _is_pending(change)):
        await _restart(change)


async def _is_pending(change: _Change) -> bool:
    return bool(change.sent) and bool(await change.guest.list_pending() & change.sent)


async def _restart(change: _Change) -> None:
    if change.planned.get("reboot_after_update", True):
        await power.restart(change.guest, change.planned)
        change.was_stopped = True
        return
    change.guest.work.warn(
        "A VM has to be restarted",
        f"Changes of VM {change.guest.vm_id} come into force when it is restarted; `reboot_after_update` is "
        "false, so that this is left to you.",
    )
