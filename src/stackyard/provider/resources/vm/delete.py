"""Removing a VM: stopped first, and its number forgotten everywhere if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.guests import VM, find_guest
from stackyard.provider.guests.guest import Guest, seconds
from stackyard.provider.resources.vm import power
from stackyard.provider.resources.vm.devices import agent_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["delete", "remove_vm"]

_BUSY = ("VM is running", "is running - destroy failed")
_ATTEMPTS = 3


async def delete(work: Work, state: Object) -> None:
    """Stop a VM and remove it with its disks."""
    vm_id = int(state["id"])
    try:
        await _remove(Guest(work=work, node=str(state["node_name"]), vm_id=vm_id), state)
    except proxmox.MissingError:
        # Gone, or on another node since the state was read.
        found = await find_guest(work, vm_id, VM)
        if found is not None:
            await _remove(Guest(work=work, node=str(found["node"]), vm_id=vm_id), state)
    await work.session.journal.confirm(work.type_name, vm_id)


async def _remove(guest: Guest, state: Object) -> None:
    timeout_s = max(seconds(state, "timeout_stop_vm", 300), seconds(state, "timeout_shutdown_vm"))

    async def stop() -> None:
        await power.stop(guest, state, config=await _agent_of(guest, state))

    runs = bool(state.get("started")) and not state.get("template")
    await remove_vm(guest, state, stop=stop, runs=runs, timeout_s=timeout_s)


async def remove_vm(
    guest: Guest, state: Object, *, stop: Callable[[], Awaitable[None]], runs: bool, timeout_s: float
) -> None:
    """Remove a VM with its disks.

    Args:
        guest: The VM.
        state: Says what goes with it.
        stop: Stops it.
        runs: Whether it has to be stopped before.
        timeout_s: How long the removal may take.
    """
    params = {
        "purge": bool(state.get("purge_on_destroy", True)),
        "destroy-unreferenced-disks": bool(state.get("delete_unreferenced_disks_on_destroy", True)),
    }
    for attempt in range(1, _ATTEMPTS + 1):
        if runs:
            await stop()
        try:
            await guest.remove(params, timeout_s=timeout_s)
        except (proxmox.RefusedError, proxmox.TaskFailedError) as err:
            # Somebody has started it meanwhile.
            runs = any(text in str(err) for text in _BUSY)
            if attempt == _ATTEMPTS or not runs:
                raise
        else:
            return


async def _agent_of(guest: Guest, state: Object) -> dict[str, Any]:
    """Return as much of the configuration as tells whether to ask the agent to stop it."""
    if state.get("stop_on_destroy"):
        return {}
    if state.get("clone") and not state.get("agent"):
        return await guest.current()
    return {"agent": agent_text(state)}
