"""What the configuration of a clone names, brought to the clone; anything else of it stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.fields.drives import is_cdrom
from stackyard.provider.problems import AttributeValueError
from stackyard.provider.resources.guests.devices import (
    card_text,
    disk_size_gb,
    disk_text,
    is_same,
    new_disk_text,
    read_card,
    read_disk,
)
from stackyard.provider.resources.guests.hardware import (
    PARTS,
    hardware_params,
    own_params,
    read_hardware,
    read_own,
)
from stackyard.provider.resources.guests.spelling import keep_spelling
from stackyard.provider.resources.vm.clone import move_disk
from stackyard.provider.resources.vm.images import require_larger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.guests import Guest
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["apply_managed", "check_disks", "read_managed"]

_OWN = ("name", "description", "tags")


async def check_disks(work: Work, planned: Object, config: Mapping[str, Any]) -> None:
    """Make sure that the disks of a plan can be had, before anything is changed.

    Args:
        work: The operation.
        planned: What is to be.
        config: The configuration of the VM, or of the one that it is cloned from.

    Raises:
        AttributeValueError: A disk would have to become smaller, or be smaller than its image, or nothing
            says where a new one is made.
    """
    for slot, disk in _disks(planned).items():
        if slot not in config:
            new_disk_text(slot, disk)
            continue
        size, has = disk.get("size_gb"), disk_size_gb(str(config[slot]))
        if isinstance(size, int) and has is not None and size < has:
            raise AttributeValueError(
                f"Disk {slot} has {has} GiB, and a disk cannot be made smaller: {size} is too small.",
                ("disk",),
            )
    begun = [
        {"interface": slot, "import_from": disk.get("import_from"), "size": disk.get("size_gb")}
        for slot, disk in _disks(planned).items()
        if slot not in config
    ]
    await require_larger(work, str(planned["node_name"]), begun)


async def apply_managed(
    guest: Guest, planned: Object, *, more: Mapping[str, Any] | None = None, timeout_s: float
) -> None:
    """Set what a plan names, and take away what it lists in `delete`.

    Args:
        guest: The VM.
        planned: What is to be.
        more: Properties to set beside that; None unsets one.
        timeout_s: How long each step may take.
    """
    config = await guest.config()
    await check_disks(guest.work, planned, config)
    config = await _move_disks(guest, planned, config, timeout_s)
    made = {slot: new_disk_text(slot, disk) for slot, disk in _disks(planned).items() if slot not in config}
    wanted = {**_params(planned, config), **made}
    changed = {key: value for key, value in wanted.items() if not is_same(key, config.get(key), value)}
    changed |= {key: value for key, value in (more or {}).items() if value is not None}
    gone = [slot for slots in (planned.get("delete") or {}).values() for slot in slots or ()]
    gone += [name for name in _OWN if planned.get(name) in ("", [])]
    gone += [name for name, value in (more or {}).items() if value is None]
    unset = [key for key in gone if key in config]
    await guest.set(changed, delete=unset, allocates=made, timeout_s=timeout_s)
    await _grow_disks(guest, planned, timeout_s)


def _disks(planned: Object) -> dict[str, Object]:
    return {slot: disk or {} for slot, disk in sorted((planned.get("disk") or {}).items())}


def _params(planned: Object, config: Mapping[str, Any]) -> dict[str, Any]:
    cards = {
        slot: card_text(card or {}, config.get(slot)) for slot, card in (planned.get("network") or {}).items()
    }
    disks = {
        slot: disk_text(disk, str(config[slot])) for slot, disk in _disks(planned).items() if slot in config
    }
    return {**own_params(planned), **hardware_params(planned), **cards, **disks}


async def _move_disks(
    guest: Guest, planned: Object, config: dict[str, Any], timeout_s: float
) -> dict[str, Any]:
    """Bring disks that are there to the storages that a plan names; return the configuration after that."""
    for slot, disk in _disks(planned).items():
        storage = str(disk.get("datastore_id") or "")
        if slot not in config or disk.get("file") or is_cdrom(config[slot]):
            continue
        if await move_disk(guest, slot, storage, config, timeout_s=timeout_s):
            config = await guest.config()
    return config


async def _grow_disks(guest: Guest, planned: Object, timeout_s: float) -> None:
    sizes = {slot: disk.get("size_gb") for slot, disk in _disks(planned).items()}
    if not any(isinstance(size, int) for size in sizes.values()):
        return
    config = await guest.config()
    for slot, size in sizes.items():
        has = disk_size_gb(str(config.get(slot, "")))
        if isinstance(size, int) and has is not None and has < size:
            await guest.run("resize", {"disk": slot, "size": f"{size}G"}, timeout_s=timeout_s)


def read_managed(known: Object, config: Mapping[str, Any]) -> Object:
    """Return what is known of a clone as it is now; what no configuration names stays unknown.

    A slot that somebody has taken away is left out, so that a plan shows it.
    """
    own, hardware = read_own(config), read_hardware(config)
    own["tags"] = own["tags"] or []
    state = {name: keep_spelling(known[name], own[name]) for name in _OWN if known.get(name) is not None}
    for part in PARTS:
        if isinstance(known.get(part), dict):
            read = _read_drives if part == "cdrom" else _read_part
            state[part] = read(known[part], hardware[part] or {})
    for name, read_device in (("network", read_card), ("disk", read_disk)):
        if isinstance(known.get(name), dict):
            state[name] = {
                slot: read_device(device or {}, str(config[slot]))
                for slot, device in known[name].items()
                if slot in config
            }
    return state


def _read_part(known: Object, found: Object) -> Object:
    return {
        name: None if before is None else keep_spelling(before, found.get(name))
        for name, before in known.items()
    }


def _read_drives(known: Object, found: Object) -> Object:
    return {slot: _read_part(drive, found[slot]) for slot, drive in known.items() if slot in found}
