"""What migrations of VMs and of containers have in common: their log, their lock, the copies of volumes."""

from __future__ import annotations

import abc
import datetime
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from pvelab.server.problems import PveError
from pvelab.world.cluster.jobs import replicated_volumes
from pvelab.world.storage import images
from pvelab.world.storage.allocation import allocate

if TYPE_CHECKING:
    from collections.abc import Callable

    from pvelab.world.storage.volumes import NewVolume
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["GuestMigration"]


@dataclass(slots=True, kw_only=True)
class GuestMigration(abc.ABC):
    """One guest on its way from one node to another.

    Attributes:
        world: The lab.
        task: Whose work it is.
        vmid: The guest.
        source: The node that it is on.
        target: The node that it goes to.
        copied: The new volume on the target of each that was copied.
    """

    kind: ClassVar[str]

    world: World
    task: Task
    vmid: int
    source: str
    target: str
    copied: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        """Do it.

        Raises:
            PveError: `migration aborted`; the log says why, and the guest is where it was.
        """
        began = self.world.clock.now()
        try:
            await self._work()
        except PveError as problem:
            self._error(f"migration aborted (duration {self._duration(began)}): {problem.text}")
            raise PveError("migration aborted") from problem
        self._log(f"migration finished successfully (duration {self._duration(began)})")

    @abc.abstractmethod
    async def _work(self) -> None:
        """Take the guest to the target."""

    async def _copy_volume(self, volid: str, storage: str, new: Callable[[Document], NewVolume]) -> None:
        """Copy a volume to a storage of the target, unless replication has done it already."""
        volume = self.world.volumes.require(volid, self.source)
        if volid in replicated_volumes(self.world.store, self.vmid, self.target):
            self._log(f"volume '{volid}' is replicated to the target already")
            return
        try:
            copy = await allocate(self.world, self.task, new(volume))
        except PveError as problem:
            text = f"storage migration for '{volid}' to storage '{storage}' failed - {problem.text}"
            raise PveError(text) from problem
        self.copied[volid] = copy
        self._log(f"volume '{volid}' is '{copy}' on the target")
        with self.task.step():
            images.copy_snapshots(self.world, (volid, self.source), (copy, self.target))

    def _drop_copies(self) -> None:
        """Remove what was copied, and the lock, in the running step."""
        for volid in self.copied.values():
            self.world.volumes.free(volid, self.target)
        self._set_lock(None)

    def _guest(self) -> Document:
        return self.world.guests.require(self.kind, self.source, self.vmid)

    def _set_lock(self, lock: str | None) -> None:
        guest = self._guest()
        config = {key: value for key, value in guest["config"].items() if key != "lock"}
        self.world.guests.update(guest, config={**config, "lock": lock} if lock else config)

    def _log(self, text: str) -> None:
        now = datetime.datetime.fromtimestamp(self.world.clock.now(), datetime.UTC)
        for line in text.split("\n"):
            self.task.log(f"{now:%Y-%m-%d %H:%M:%S} {line}")

    def _error(self, text: str) -> None:
        self._log(f"ERROR: {text}")

    def _duration(self, began: float) -> str:
        seconds = max(0, int(self.world.clock.now() - began))
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
