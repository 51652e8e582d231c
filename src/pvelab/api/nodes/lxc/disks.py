"""Making the volumes that a container's mount points ask for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.server.problems import PveError
from pvelab.world.rollback import undo_on_failure
from pvelab.world.storage import images
from pvelab.world.storage.allocation import Worker, allocate, free_all
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_features import owner_of
from pvelab.world.storage.volumes import NewVolume

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["VolumeMaker", "free_volume"]


@dataclass(slots=True, kw_only=True)
class VolumeMaker:
    """Makes volumes for one container; `made` is what to give back if the rest of the work fails.

    Attributes:
        world: The lab.
        worker: Whose work it is.
        node: The node of the container.
        vmid: The container.
        rescan: Whether to look up the size of volumes that exist, or to believe what is given.
        made: The volumes allocated so far.
    """

    world: World
    worker: Worker
    node: str
    vmid: int
    rescan: bool = True
    made: list[str] = field(default_factory=list)

    async def create(self, settings: Mapping[str, Any]) -> dict[str, str]:
        """Return the mount points among some settings as they are kept, volumes allocated where asked for.

        Raises:
            PveError: A volume does not exist or cannot be created; what was created is given back.
        """
        printed: dict[str, str] = {}
        with undo_on_failure(self.undo):
            for key, point in mountpoints.each_volume(self.world.facts, settings):
                new = mountpoints.parse_new_disk(str(point["volume"]))
                if new is not None:
                    point["volume"] = await self.allocate(*new)
                    point["size"] = new[1]
                elif self.rescan and mountpoints.mount_type(str(point["volume"])) is MountType.VOLUME:
                    point["size"] = self._size_of(str(point["volume"]), point.get("size"))
                printed[key] = mountpoints.print_mount_point(self.world.facts, key, point)
        return printed

    async def allocate(self, storage: str, size: int) -> str:
        """Allocate and format one volume and return its id.

        Raises:
            PveError: The storage holds no containers, refuses, or is full.
        """
        config = self.world.storages.require(storage, self.node)
        if "rootdir" not in self.world.storages.content_types(config):
            text = f"content type 'rootdir' is not available or configured on storage '{storage}'"
            raise PveError(text)
        chosen = self._format(config, size)
        new = NewVolume(
            storage=storage, node=self.node, vmid=self.vmid, size=size, format=chosen, content="rootdir"
        )
        volid = await allocate(self.world, self.worker, new)
        self.made.append(volid)
        if chosen == "raw":
            _, _, name = volid.partition(":")
            if config["type"] in ("lvm", "lvmthin"):
                self.worker.log(f'  Logical volume "{name}" created.')
            self.worker.log(f"Creating filesystem with {size // 4096} 4k blocks and {size // 16384} inodes")
        return volid

    def undo(self) -> None:
        """Give back every volume that was created."""
        free_all(self.world, self.worker, self.made, self.node)
        self.made.clear()

    def _size_of(self, volid: str, given: int | None) -> int | None:
        volume = self.world.volumes.find(volid, self.node)
        if volume is None:
            self.worker.log(f"Could not rescan volume size - no such volume '{volid}'")
            return given
        return int(volume["size"])

    @staticmethod
    def _format(config: Document, size: int) -> str:
        kind = type_of(config)
        # Without a size a directory takes the place of an image, where there are directories.
        if kind.files and size == 0 and "subvol" in kind.formats:
            return "subvol"
        return "raw" if kind.files else kind.container_format


def free_volume(world: World, vmid: int, volid: str, node: str, worker: Worker) -> None:
    """Free a volume of a container, in the running transaction; one that belongs to another guest stays.

    Raises:
        PveError: Linked clones depend on it.
    """
    if mountpoints.mount_type(volid) is not MountType.VOLUME or ":" not in volid:
        return
    if owner_of(volid) != vmid:
        worker.log(f"ignore deletion of '{volid}', CT {vmid} isn't the owner!")
        return
    images.check_unused_base(world, volid, node)
    world.volumes.free(volid, node)
