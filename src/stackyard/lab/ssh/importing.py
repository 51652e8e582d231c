"""`qm disk import`: an image in a storage becomes a disk of a VM that is not used yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.lab.allocation import Inline, allocate
from stackyard.lab.contents import disk_size
from stackyard.lab.lineage import image_in
from stackyard.lab.problems import PveError
from stackyard.lab.storages import type_of
from stackyard.lab.volumes import NewVolume

if TYPE_CHECKING:
    from stackyard.lab.ssh.seat import Seat
    from stackyard.lab.store import Document

__all__ = ["import_disk"]

_MOST_UNUSED = 256


async def import_disk(
    seat: Seat, vmid: int, source: str, storage: str, wanted: str | None
) -> tuple[str, str]:
    """Copy an image to a new disk of a VM; return the option that holds it and its volume id.

    Args:
        seat: Who does it.
        vmid: The VM.
        source: The image: a path of the node or a volume id.
        storage: Where the disk goes.
        wanted: The format of the disk, if the storage can hold it.

    Raises:
        PveError: The VM, the image or the storage is not there, or the storage is full.
    """
    world, node = seat.world, seat.node
    world.guests.check_unlocked(world.guests.require("qemu", node, vmid))
    image = _image_at(seat, source)
    size = disk_size(image)
    kind = type_of(world.storages.require(storage, node))
    chosen = wanted if wanted in kind.formats else kind.default_format
    new = NewVolume(storage=storage, node=node, vmid=vmid, size=size, format=chosen, image=image_in(image))
    async with world.locks.guest("qemu", vmid):
        volid = await allocate(world, Inline(world), new)
        with world.store.transaction():
            guest = world.guests.require("qemu", node, vmid)
            config = guest["config"]
            key = next(name for n in range(_MOST_UNUSED) if (name := f"unused{n}") not in config)
            world.guests.update(guest, config={**config, key: volid})
    return key, volid


def _image_at(seat: Seat, source: str) -> Document:
    if not source.startswith("/"):
        return seat.world.volumes.require(source, seat.node)
    volume = seat.files.volume(source)
    if volume is None:
        raise PveError(f"failed to stat '{source}': No such file or directory")
    return volume
