"""Copying one drive of a VM, in full or linked: what cloning, moving and importing have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.disks import CLOUDINIT_SIZE, TPM_SIZE, efi_size
from pvelab.world.guests.lineage import image_in
from pvelab.world.storage import images
from pvelab.world.storage.allocation import Worker, allocate, allocate_clone
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.nodes.qemu.drives import Drive
    from pvelab.world.world import World

__all__ = ["Copy", "copy_drive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A drive to copy.

    Attributes:
        key: Its option: `scsi0`.
        drive: What it is now.
        node: The node that does it.
        vmid: The VM that gets the copy.
        full: Whether all data is copied; else the copy refers to its base.
        storage: Where the copy goes, None for where the drive is.
        format: The format of the copy, None for that of the drive.
        snapshot: The snapshot of the drive that is copied, None for what it is now.
    """

    key: str
    drive: Mapping[str, Any]
    node: str
    vmid: int
    full: bool = True
    storage: str | None = None
    format: str | None = None
    snapshot: str | None = None


async def copy_drive(world: World, worker: Worker, copy: Copy, made: list[str]) -> Drive:
    """Copy a drive and return the new one; its volume is added to `made` as soon as there is one.

    Raises:
        PveError: The storage refuses, or its lock was not free in time.
    """
    source = str(copy.drive["file"])
    worker.log(f"create {'full' if copy.full else 'linked'} clone of drive {copy.key} ({source})")
    if copy.full:
        new = _new_volume(world, worker, copy)
        volid = await allocate(world, worker, new)
        worker.log(f"allocated target volume '{volid}'")
    else:
        volid = await allocate_clone(world, worker, source, copy.node, copy.vmid, snapshot=copy.snapshot)
    made.append(volid)
    drive = {key: value for key, value in copy.drive.items() if key != "format"}
    return {**drive, "file": volid, "size": int(world.volumes.require(volid, copy.node)["size"])}


def _new_volume(world: World, worker: Worker, copy: Copy) -> NewVolume:
    source = str(copy.drive["file"])
    storage = copy.storage or parse_volume_id(source)[0]
    kind = type_of(world.storages.config(storage))
    volume = world.volumes.require(source, copy.node)
    wanted = copy.format or str(volume.get("format", "raw"))
    chosen = wanted if wanted in kind.formats else kind.default_format
    if copy.format and copy.format != chosen:
        worker.log(
            f"format '{copy.format}' is not supported by the target storage '{storage}' - using"
            f" '{chosen}' instead"
        )
    name = None
    if drives.is_cloudinit(copy.drive):
        name = f"vm-{copy.vmid}-cloudinit" + (f".{chosen}" if kind.files else "")
    return NewVolume(
        storage=storage,
        node=copy.node,
        vmid=copy.vmid,
        size=_size(world, copy),
        format=chosen,
        name=name,
        image=image_in(volume),
    )


def _size(world: World, copy: Copy) -> int:
    source = str(copy.drive["file"])
    if drives.is_cloudinit(copy.drive):
        return CLOUDINIT_SIZE
    if copy.key == "efidisk0":
        return efi_size(copy.drive)
    if copy.key == "tpmstate0":
        return TPM_SIZE
    if copy.snapshot:
        return images.snapshots_of(world, source, copy.node)[copy.snapshot]
    return int(world.volumes.require(source, copy.node)["size"])
