"""Finding, stopping and removing a VM, as both kinds do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.guests import VM, Guest, locate_guest
from stackyard.provider.resources.guests.timeouts import limit, timeout_s
from stackyard.provider.resources.vm import power
from stackyard.provider.resources.vm.delete import remove_vm

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["delete", "find", "stop"]

# What a VM that does not shut down leaves of the time, to stop it by force and to remove it.
_RESERVE_S = 30.0


async def find(work: Work, state: Object) -> Guest | None:
    """Return the VM of a state where it is now; None when it is gone."""
    return await locate_guest(work, str(state["node_name"]), int(state["id"]), VM)


async def stop(guest: Guest, state: Object, operation: str) -> None:
    """Stop a VM, by force at once or when it has not shut down in time.

    Args:
        guest: The VM.
        state: Says how, and how long it may take.
        operation: What it is stopped for: `update` or `delete`.
    """
    given, setting = timeout_s(state, operation), f"timeouts.{operation}"
    if state.get("stop_on_destroy"):
        await power.stop_within(guest, given, setting=setting)
    else:
        await power.shut_down_within(guest, max(1.0, given / 2, given - _RESERVE_S), setting=setting)


async def delete(work: Work, state: Object) -> None:
    """Stop a VM and remove it with its disks."""
    async with limit(state, "delete"):
        guest = await find(work, state)
        if guest is not None:
            await remove_vm(
                guest,
                state,
                stop=lambda: stop(guest, state, "delete"),
                runs=await guest.is_running(),
                timeout_s=timeout_s(state, "delete"),
            )
    await work.session.journal.confirm(work.type_name, int(state["id"]))
