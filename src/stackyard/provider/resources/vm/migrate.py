"""Moving a VM to another node, also one that a manager of high availability looks after."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.provider.guests import VM, find_guest
from stackyard.provider.time_limits import time_limit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.provider.guests.guest import Guest

__all__ = ["migrate"]

_BACKOFF = Backoff(0.1, 3.0, growth=1.5)
_KEPT = ("comment", "failback", "group", "max_relocate", "max_restart", "state")


async def migrate(
    guest: Guest, target: str, *, timeout_s: float, storage: str = "", setting: str = "timeout_migrate"
) -> Guest:
    """Move a VM with its disks and return it where it is then.

    Args:
        guest: The VM.
        target: The node that it goes to.
        timeout_s: How long it may take.
        storage: The storage that its disks go to; where they have one of the same name if empty.
        setting: The attribute that says how long it may take.

    Raises:
        ProxmoxError: It could not be moved, or did not arrive in time.
    """
    if guest.node == target:
        return guest
    resource = await _ha_resource(guest)
    running = await guest.is_running()
    if resource is not None and running:
        await guest.work.client.post(
            f"/cluster/ha/resources/vm:{guest.vm_id}/migrate", {"node": target}, repeatable=True
        )
        what = f"The move of VM {guest.vm_id} from {guest.node} to {target}"
        async with time_limit(timeout_s, what=what, setting=setting):
            return await _wait_for_arrival(guest, target)
    async with _out_of_ha(guest, resource):
        return await _move(
            guest, target, {"targetstorage": storage or None, "online": running or None}, timeout_s
        )


async def _move(guest: Guest, target: str, params: dict[str, Any], timeout_s: float) -> Guest:
    async def is_moved() -> bool:
        return await _node_of(guest) == target

    sent = {**params, "target": target, "with-local-disks": True}
    await guest.run_unless_done("migrate", sent, is_done=is_moved, timeout_s=timeout_s)
    return guest.on(target)


async def _node_of(guest: Guest) -> str:
    guest.work.client.expire_reads()
    found = await find_guest(guest.work, guest.vm_id, VM)
    return str((found or {}).get("node", ""))


async def _wait_for_arrival(guest: Guest, target: str) -> Guest:
    """Wait until the manager has moved it; it does so at a time of its own."""
    pauses = iter(_BACKOFF)
    while await _node_of(guest) != target or (await guest.on(target).status()).get("lock"):
        await guest.work.client.pause(next(pauses))
    return guest.on(target)


async def _ha_resource(guest: Guest) -> dict[str, Any] | None:
    listed = await guest.work.client.get("/cluster/ha/resources", max_age_s=5.0)
    return next((one for one in listed or () if one.get("sid") == f"vm:{guest.vm_id}"), None)


@contextlib.asynccontextmanager
async def _out_of_ha(guest: Guest, resource: dict[str, Any] | None) -> AsyncIterator[None]:
    """Take a VM that does not run out of its manager's hands: asked to move such a one, it does nothing."""
    if resource is None:
        yield
        return
    client, sid = guest.work.client, f"vm:{guest.vm_id}"
    await client.delete(f"/cluster/ha/resources/{sid}")
    try:
        yield
    finally:
        kept = {name: resource[name] for name in _KEPT if resource.get(name) is not None}
        await client.post("/cluster/ha/resources", {"sid": sid, **kept})
