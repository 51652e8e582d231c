"""What the agents of nodes do to guests: start, stop and move them, each in a task of root@pam."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.api.nodes.lxc.migration import Migration as ContainerMigration
from pvelab.api.nodes.lxc.power import shut_container_down, start_container, stop_container
from pvelab.api.nodes.qemu.local_volumes import StorageMap
from pvelab.api.nodes.qemu.migrate import check_available
from pvelab.api.nodes.qemu.migration import Migration
from pvelab.api.nodes.qemu.power import shut_down, start_guest, stop_guest
from pvelab.faults.latency import Work
from pvelab.world.access.directory import ROOT

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task, WorkFunction
    from pvelab.world.world import World

__all__ = ["GuestTasks"]

_MIGRATION_TIMEOUT_S = 180


class GuestTasks:
    """Starts the tasks in which guests of both kinds start, stop and move."""

    def start(self, world: World, guest: Document) -> str:
        """Start a guest."""
        vmid, node = int(guest["vmid"]), str(guest["node"])
        start = start_guest if guest["type"] == "qemu" else start_container

        async def work(task: Task) -> None:
            await start(world, task, vmid, node)

        return _begin(world, guest, ("qmstart", "vzstart"), work)

    def stop(self, world: World, guest: Document, timeout_s: int) -> str:
        """Shut a guest down, by force after the timeout; with none of it at once."""
        kind, vmid, node = str(guest["type"]), int(guest["vmid"]), str(guest["node"])

        async def kill(task: Task) -> None:
            async with world.locks.guest(kind, vmid):
                world.guests.check_unlocked(world.guests.require(kind, node, vmid))
                await task.spend(Work.STOP)
                with task.step():
                    (stop_guest if kind == "qemu" else stop_container)(world, vmid)

        async def run_shutdown(task: Task) -> None:
            if kind == "lxc":
                await shut_container_down(world, task, guest, timeout_s)
                return
            async with world.locks.guest(kind, vmid):
                present = world.guests.require(kind, node, vmid)
                world.guests.check_unlocked(present)
                await shut_down(world, task, present, timeout_s=timeout_s, force=True)

        if timeout_s:
            return _begin(world, guest, ("qmshutdown", "vzshutdown"), run_shutdown)
        return _begin(world, guest, ("qmstop", "vzstop"), kill)

    def move(self, world: World, guest: Document, target: str, *, online: bool) -> str:
        """Take a guest to another node, running or stopped, its local disks with it."""
        vmid, source = int(guest["vmid"]), str(guest["node"])

        async def move_vm(task: Task) -> None:
            check_available(world, guest["config"], target)
            migration = Migration(
                world=world,
                task=task,
                vmid=vmid,
                source=source,
                target=target,
                storage_map=StorageMap(),
                online=online,
                with_local_disks=True,
                force=True,
            )
            await migration.run()

        async def move_container(task: Task) -> None:
            migration = ContainerMigration(
                world=world,
                task=task,
                vmid=vmid,
                source=source,
                target=target,
                storages={},
                restart=False,
                timeout_s=_MIGRATION_TIMEOUT_S,
            )
            await migration.run()

        work = move_vm if guest["type"] == "qemu" else move_container
        return _begin(world, guest, ("qmigrate", "vzmigrate"), work)


def _begin(world: World, guest: Document, kinds: tuple[str, str], work: WorkFunction) -> str:
    kind = kinds[0] if guest["type"] == "qemu" else kinds[1]
    return world.tasks.start(str(guest["node"]), kind, str(guest["vmid"]), authid=ROOT, work=work)
