"""Removing a VM: stopped first, and its number forgotten everywhere if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard import proxmox
from stackyard.provider.resources.vm import power
from stackyard.provider.resources.vm.guest import Guest, seconds
from stackyard.provider.resources.vm.read import find

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["delete"]

_BUSY = ("VM is running", "is running - destroy failed")
_ATTEMPTS = 3


async def delete(work: Work, state: Object) -> None:
    """Stop a VM and remove it with its disks."""
    vm_id = int(state["id"])
    found = await find(work, vm_id)
    if found is not None:
        await _remove(Guest(work=work, node=str(found["node"]), vm_id=vm_id), state)
    await work.session.journal.confirm(work.type_name, vm_id)


async def _remove(guest: Guest, state: Object) -> None:
    timeout_s = max(seconds(state, "timeout_stop_vm", 300), seconds(state, "timeout_shutdown_vm"))
    params = {
        "purge": bool(state.get("purge_on_destroy", True)),
        "destroy-unreferenced-disks": bool(state.get("delete_unreferenced_disks_on_destroy", True)),
    }
    for attempt in range(1, _ATTEMPTS + 1):
        if await guest.is_running():
            config: dict[str, Any] | None = {} if state.get("stop_on_destroy") else None
            await power.stop(guest, state, config=config)
        try:
            upid = await guest.work.client.delete(guest.path, params)
            await proxmox.wait_for(guest.work.client, str(upid), timeout_s=timeout_s)
        except (proxmox.RefusedError, proxmox.TaskFailedError) as err:
            if isinstance(err, proxmox.MissingError):
                return
            # Somebody started it between the two calls.
            if attempt == _ATTEMPTS or not any(text in str(err) for text in _BUSY):
                raise
        else:
            return
