"""Makes the machines of real guests: VMs by QEMU; containers have no disk to boot and stay what they are."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu.power import stop_guest
from pvelab.machines.machine import Kind
from pvelab.machines.qemu.disks import Disks
from pvelab.machines.qemu.invocation import HostResources
from pvelab.machines.qemu.machine import QemuMachine
from pvelab.machines.qemu.programs import find_accelerator

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pvelab.machines.machine import GuestMachine, MachineMaker
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["QemuMaker"]


class QemuMaker:
    """The machines of a lab whose VMs are real.

    Args:
        world: The lab.
        folder: Where the disks are; None: they go with the lab.
        containers: Makes the machines of containers.
        is_open: Whether guests may reach other machines, and this one.
    """

    kind = Kind.QEMU
    reason: str | None = None

    def __init__(
        self, world: World, folder: Path | None, *, containers: MachineMaker, is_open: bool = False
    ) -> None:
        self._world = world
        self._containers = containers
        self._is_open = is_open
        self._lasting = folder
        self._folder = folder or Path(tempfile.mkdtemp(prefix="stackyard-qemu-"))
        self._disks = Disks(world, self._folder)
        self._host: HostResources | None = None
        self._machines: dict[int, QemuMachine] = {}
        self._switching: set[asyncio.Task[None]] = set()
        world.store.watch("guests", self._guest_changed)

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest; QEMU is not started yet."""
        if guest["type"] != "qemu":
            return self._containers.make(guest)
        vmid = int(guest["vmid"])
        machine = QemuMachine(
            self._world,
            vmid,
            self._disks,
            self._find_host,
            on_end=self._note_end,
            before=self._machines.get(vmid),
        )
        self._machines[vmid] = machine
        return machine

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Let a guest begin with a copy of another one's disks."""
        await self._containers.copy(source, target, snapshot)
        await self._copy(source, self._disks.place(source, snapshot), self._disks.place(target))

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Keep a copy of a guest's disks; one that runs is held still meanwhile."""
        await self._containers.remember(vmid, snapshot)
        await self._copy(vmid, self._disks.place(vmid), self._disks.place(vmid, snapshot))

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Make the disks of a guest what they were."""
        await self._containers.go_back(vmid, snapshot)
        machine = self._machines.pop(vmid, None)
        if machine is not None:
            await machine.kill()
        await self._copy(vmid, self._disks.place(vmid, snapshot), self._disks.place(vmid))

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the disks of a guest, or of one of its snapshots."""
        self._containers.forget(vmid, snapshot)
        self._disks.remove(vmid, snapshot)

    async def copy_folder(self, source: Path, target: Path) -> None:
        """Copy as the makers of containers do."""
        await self._containers.copy_folder(source, target)

    async def close(self) -> None:
        """Remove what does not outlive the lab."""
        if self._switching:
            await asyncio.wait(self._switching)
        await self._containers.close()
        if self._lasting is None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _copy(self, vmid: int, source: Path, target: Path) -> None:
        machine = self._machines.get(vmid)
        if machine is None or not machine.is_running:
            await self._disks.copy(source, target)
            return
        async with machine.freeze():
            await self._disks.copy(source, target)

    async def _find_host(self) -> HostResources:
        if self._host is None:
            accelerator, exposed = await find_accelerator(), tuple(sorted(self._world.nest.exposed))
            self._host = HostResources(accelerator=accelerator, is_open=self._is_open, exposed=exposed)
        return self._host

    def _note_end(self, vmid: int) -> None:
        """Note that a guest has shut down by itself, or that its QEMU failed."""
        with self._world.store.transaction():
            stop_guest(self._world, vmid)

    def _guest_changed(self, key: str, old: Document | None, new: Document | None) -> None:
        """Let QEMU follow when a VM is paused, or continues."""
        before, after = _is_paused(old), _is_paused(new)
        machine = self._machines.get(int(key))
        if machine is not None and before != after and new is not None and new["status"] == "running":
            self._world.store.after_commit(
                lambda: self._switch(machine.pause() if after else machine.resume())
            )

    def _switch(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._switching.add(task)
        task.add_done_callback(self._report_failure)

    def _report_failure(self, task: asyncio.Task[None]) -> None:
        self._switching.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # It stopped meanwhile.
            context = {"message": "a VM was not paused or resumed", "exception": task.exception()}
            asyncio.get_running_loop().call_exception_handler(context)


def _is_paused(guest: Document | None) -> bool:
    return guest is not None and guest["status"] == "running" and guest["run"].get("qmpstatus") == "paused"
