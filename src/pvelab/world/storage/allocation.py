"""Allocating volumes: one at a time on each storage, as the storage lock of Proxmox has it.

Anyone who waits longer than ten seconds for the lock fails, which is how parallel clones to one slow storage
fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pvelab.faults.latency import Work
from pvelab.world.storage import images
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from pvelab.world.storage.volumes import NewVolume
    from pvelab.world.world import World

__all__ = ["Inline", "Worker", "allocate", "allocate_clone", "free_all"]


class Worker(Protocol):
    """Someone who works: a task, or a call that does its work before it answers."""

    def log(self, text: str) -> None:
        """Say what is done."""
        ...

    def warn(self, text: str) -> None:
        """Say what went wrong without stopping the work."""
        ...

    async def spend(self, work: Work) -> None:
        """Take as long as this kind of work takes here."""
        ...

    def step(self) -> AbstractContextManager[None]:
        """Make all changes of a block one transaction."""
        ...


class Inline:
    """The work of an `async` handler that answers only when it is done; no one reads its log."""

    def __init__(self, world: World) -> None:
        self._world = world

    def log(self, text: str) -> None:
        """Say nothing: there is no task whose log it could be."""

    def warn(self, text: str) -> None:
        """Say nothing: there is no task whose log it could be."""

    async def spend(self, work: Work) -> None:
        """Take as long as this kind of work takes here."""
        await self._world.clock.sleep(self._world.latency.seconds(work))

    def step(self) -> AbstractContextManager[None]:
        """Make all changes of a block one transaction."""
        return self._world.store.transaction()


async def allocate(world: World, worker: Worker, new: NewVolume) -> str:
    """Allocate a volume as a step of some work and return its id.

    Raises:
        PveError: The lock was not free in time, or the storage refuses.
    """
    async with _storage_lock(world, new.storage, new.node):
        await worker.spend(Work.ALLOCATE)
        with worker.step():
            return world.volumes.allocate(new)


async def allocate_clone(
    world: World, worker: Worker, volid: str, node: str, vmid: int, *, snapshot: str | None = None
) -> str:
    """Make a linked clone of a volume as a step of some work and return its id.

    Raises:
        PveError: The lock was not free in time, or the storage refuses.
    """
    content = str(world.volumes.require(volid, node)["content"])
    async with _storage_lock(world, parse_volume_id(volid)[0], node):
        await worker.spend(Work.ALLOCATE)
        with worker.step():
            return images.clone_volume(world, volid, node, vmid, content=content, snapshot=snapshot)


def _storage_lock(world: World, storage: str, node: str) -> AbstractAsyncContextManager[None]:
    config = world.storages.require(storage, node)
    return world.locks.storage(storage, None if world.storages.is_shared(config) else node)


def free_all(world: World, worker: Worker, volids: list[str], node: str) -> None:
    """Give back the volumes of work that failed, as one step."""
    if volids:
        with worker.step():
            for volid in volids:
                world.volumes.free(volid, node)
