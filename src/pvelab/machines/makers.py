"""What makes the machines of a lab: sandboxes where they work, records where not."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

from pvelab.machines.bubblewrap import Bubblewrap, find_bubblewrap
from pvelab.machines.facts import boot_facts
from pvelab.machines.machine import GuestMachine, Kind, MachineError, MachineMaker
from pvelab.machines.sandbox import SandboxMachine
from pvelab.nested.switch import Switch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pvelab.machines.roots import Roots
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["RecordedMaker", "SandboxMaker", "make_maker"]


async def make_maker(
    world: World,
    wanted: Kind | None,
    roots: Roots,
    on_question: Callable[[int, int, Mapping[str, Any]], Awaitable[Any]],
) -> MachineMaker:
    """Return what makes machines here.

    Args:
        world: The lab.
        wanted: The kind that is asked for; None for the best that works.
        roots: Where root directories are.
        on_question: Called with the guest, the user number and the question of a program in a guest.

    Raises:
        MachineError: The kind that is asked for does not work here.
    """
    if wanted is Kind.RECORDED:
        return RecordedMaker(world)
    found = await find_bubblewrap()
    if isinstance(found, Bubblewrap):
        return SandboxMaker(world, found, roots, on_question)
    if wanted is Kind.SANDBOX:
        raise MachineError(
            f"Guests are to run in a sandbox, but {found}.",
            remedy="Install bubblewrap, or leave --guests away: a fixed set of commands is answered then.",
        )
    return RecordedMaker(world, found)


class RecordedMaker:
    """Makes machines that run nothing.

    Args:
        world: The lab.
        reason: Why there are no sandboxes, if someone wants to know.
    """

    def __init__(self, world: World, reason: str | None = None) -> None:
        self._world = world
        self.reason = reason

    @property
    def kind(self) -> Kind:
        """Records."""
        return Kind.RECORDED

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest."""
        from pvelab.ssh.inside import find_recorded_machine  # lazy: it needs the whole SSH side

        return find_recorded_machine(self._world, int(guest["vmid"]))

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Do nothing: there are no disks."""

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Do nothing."""

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Do nothing."""

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Do nothing."""

    async def copy_folder(self, source: Path, target: Path) -> None:
        """Copy a folder in which no one but the lab has written."""
        await asyncio.to_thread(shutil.copytree, source, target, symlinks=True, dirs_exist_ok=True)

    async def close(self) -> None:
        """Do nothing."""


class SandboxMaker:
    """Makes sandboxes.

    Args:
        world: The lab.
        bubblewrap: What makes sandboxes here.
        roots: Where root directories are.
        on_question: Called with the guest, the user number and the question of a program in a guest.
    """

    reason: str | None = None

    def __init__(
        self,
        world: World,
        bubblewrap: Bubblewrap,
        roots: Roots,
        on_question: Callable[[int, int, Mapping[str, Any]], Awaitable[Any]],
    ) -> None:
        self._world = world
        self._bubblewrap = bubblewrap
        self._roots = roots
        self._on_question = on_question

    @property
    def kind(self) -> Kind:
        """Sandboxes."""
        return Kind.SANDBOX

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest."""
        vmid = int(guest["vmid"])
        return SandboxMachine(
            vmid,
            self._roots,
            self._bubblewrap,
            facts=lambda: self._facts(vmid),
            on_question=lambda uid, question: self._on_question(vmid, uid, question),
            on_network=lambda sock: Switch(self._world, vmid, sock),
        )

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Copy a root directory."""
        await self._roots.copy(source, target, snapshot, self._bubblewrap)

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Keep a copy of a root directory."""
        await self._roots.remember(vmid, snapshot, self._bubblewrap)

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Put a copy that was kept in place."""
        await self._roots.go_back(vmid, snapshot, self._bubblewrap)

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove root directories."""
        self._roots.forget(vmid, snapshot)

    async def copy_folder(self, source: Path, target: Path) -> None:
        """Copy a folder in a sandbox."""
        await self._bubblewrap.copy(source, target)

    async def close(self) -> None:
        """Do nothing: the directories have an owner of their own."""

    def _facts(self, vmid: int) -> Mapping[str, Any]:
        guest = self._world.guests.get(vmid)
        if guest is None:
            raise MachineError("The guest is gone.")
        return boot_facts(self._world, guest)
