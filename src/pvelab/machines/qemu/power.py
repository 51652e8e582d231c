"""The power of real guests, as the tasks of the API switch it: on, and off by asking the guest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import Kind, MachineError
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.machines.qemu.machine import QemuMachine
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["ask_agent", "power_on", "real_machine", "shut_down_real"]


async def real_machine(world: World, guest: Document) -> QemuMachine | None:
    """Return the machine of a VM that QEMU runs, None for a guest that is not real."""
    if not world.machines.is_real or guest["type"] != "qemu" or guest["status"] != "running":
        return None
    machine: Any = await world.machines.of(guest)
    return machine if machine.kind is Kind.QEMU else None


async def power_on(world: World, vmid: int) -> None:
    """Start QEMU for a VM that has just been started; nothing for a guest that is not real.

    Raises:
        PveError: It does not start.
    """
    guest = world.guests.get(vmid)
    try:
        machine = None if guest is None else await real_machine(world, guest)
        if machine is not None:
            await machine.power_on()
    except MachineError as err:
        raise PveError(f"start failed: {err.detail} {err.remedy}") from err


async def shut_down_real(world: World, guest: Document, timeout_s: float) -> bool | None:
    """Ask a real guest to shut down; return whether it did in time, None for a guest that is not real."""
    machine = await real_machine(world, guest)
    if machine is None:
        return None
    try:
        async with asyncio.timeout(timeout_s):
            await machine.stop()
    except (TimeoutError, MachineError):
        return False
    return True


async def ask_agent(world: World, guest: Document, command: str) -> Any:
    """Ask the agent in a real guest, by the API's name of a command without parameters.

    Raises:
        PveError: It does not answer, or refuses.
    """
    machine = await real_machine(world, guest)
    if machine is None:
        raise PveError(f"VM {guest['vmid']} is not running")
    if not machine.has_agent:
        raise PveError("QEMU guest agent is not running")
    try:
        return await machine.ask_agent(f"guest-{command}")
    except MachineError as err:
        raise PveError(f"Agent error: {err.detail}") from err
