"""Who can log in to a guest, without starting it for the question alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.machines.machine import MachineError
from pvelab.ssh.accounts import accounts_of

if TYPE_CHECKING:
    from pvelab.machines.machine import GuestMachine
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["list_users"]


async def list_users(world: World, guest: Document, machine: GuestMachine) -> tuple[str, ...]:
    """Return the users of a guest: its own word if someone has looked inside, else its cloud-init's."""
    said = tuple(accounts_of(world, guest))
    if not world.machines.is_awake(int(guest["vmid"])):
        return said
    try:
        own = await machine.users()
    except MachineError:
        return said
    first = [name for name in said if name in own]
    return (*first, *(name for name in own if name not in first and name not in ("root", "sync")))
