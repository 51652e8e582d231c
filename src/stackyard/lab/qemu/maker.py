"""Makes the machines of real guests: VMs by QEMU; containers have no disk to boot and stay what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.lab.inside.machine import Kind
from stackyard.lab.qemu.disks import Disks
from stackyard.lab.qemu.machine import QemuMachine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stackyard.lab.inside.machine import GuestMachine, MachineMaker
    from stackyard.lab.qemu.invocation import Host
    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["QemuMaker"]


class QemuMaker:
    """The machines of a lab whose VMs are real.

    Args:
        world: The lab.
        folder: Where the disks are.
        host: What this machine gives to guests.
        containers: Makes the machines of containers.
        on_end: Called with the number of a VM that has ended by itself.
    """

    kind = Kind.QEMU

    def __init__(
        self,
        world: World,
        folder: Path,
        host: Host,
        *,
        containers: MachineMaker,
        on_end: Callable[[int], None],
    ) -> None:
        self._world = world
        self._host = host
        self._containers = containers
        self._on_end = on_end
        self._disks = Disks(world, folder)
        self._machines: dict[int, QemuMachine] = {}

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest; QEMU is not started yet."""
        if guest["type"] != "qemu":
            return self._containers.make(guest)
        vmid = int(guest["vmid"])
        machine = QemuMachine(self._world, vmid, self._disks, self._host, on_end=self._on_end)
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
        await self._copy(vmid, self._disks.place(vmid, snapshot), self._disks.place(vmid))

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the disks of a guest, or of one of its snapshots."""
        self._containers.forget(vmid, snapshot)
        self._disks.remove(vmid, snapshot)

    async def close(self) -> None:
        """Stop all machines at once: the lab ends, and its guests with it."""
        for machine in self._machines.values():
            await machine.kill()
        await self._containers.close()

    async def _copy(self, vmid: int, source: Path, target: Path) -> None:
        machine = self._machines.get(vmid)
        if machine is None or not machine.is_running:
            await self._disks.copy(source, target)
            return
        async with machine.held():
            await self._disks.copy(source, target)
