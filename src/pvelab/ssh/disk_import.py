"""`qm disk import`: an image in a storage becomes a disk of a VM that is not used yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.guests.lineage import image_in
from pvelab.world.storage.allocation import Inline, allocate
from pvelab.world.storage.contents import disk_size
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import NewVolume

if TYPE_CHECKING:
    from pvelab.ssh.shell_session import ShellSession
    from pvelab.world.store import Document

__all__ = ["import_disk"]

_MOST_UNUSED = 256


async def import_disk(
    session: ShellSession, vmid: int, source: str, storage: str, wanted: str | None
) -> tuple[str, str]:
    """Copy an image to a new disk of a VM; return the option that holds it and its volume id.

    Args:
        session: Who does it.
        vmid: The VM.
        source: The image: a path of the node or a volume id.
        storage: Where the disk goes.
        wanted: The format of the disk, if the storage can hold it.

    Raises:
        PveError: The VM, the image or the storage is not there, or the storage is full.
    """
    world, node = session.world, session.node
    world.guests.check_unlocked(world.guests.require("qemu", node, vmid))
    image = _image_at(session, source)
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


def _image_at(session: ShellSession, source: str) -> Document:
    if not source.startswith("/"):
        return session.world.volumes.require(source, session.node)
    volume = session.files.volume(source)
    if volume is None:
        raise PveError(f"failed to stat '{source}': No such file or directory")
    return volume
