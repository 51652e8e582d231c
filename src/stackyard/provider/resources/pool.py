"""`proxmox_virtual_environment_pool`: a named set of guests and storages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.provider.create_once import create_object, note_seen
from stackyard.provider.kinds import Resource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "move_guest", "pool_values"]


def pool_values(pool: dict[str, Any]) -> Object:
    """Return the attributes of a pool as Proxmox describes it."""
    members = [
        {
            "id": member.get("id", ""),
            "type": member.get("type", ""),
            "node_name": member.get("node", ""),
            "datastore_id": member.get("storage") or "",
            "vm_id": int(member.get("vmid") or 0),
        }
        for member in pool.get("members", ())
    ]
    return {"comment": pool.get("comment") or "", "members": members}


async def move_guest(work: Work, vm_id: int, pool_id: str) -> None:
    """Put a guest into a pool and take it out of the one that it is in; an empty name is no pool."""
    guests = await work.client.get("/cluster/resources", {"type": "vm"})
    # What is true now counts, not what the state says: an earlier run may have ended between the two calls.
    current = next((one.get("pool") or "" for one in guests if one.get("vmid") == vm_id), "")
    if current == pool_id:
        return
    if current:
        await work.client.put("/pools", {"poolid": current, "vms": vm_id, "delete": True})
    if pool_id:
        await work.client.put("/pools", {"poolid": pool_id, "vms": vm_id})


async def _find(work: Work, pool_id: str) -> dict[str, Any] | None:
    try:
        found = await work.client.get("/pools", {"poolid": pool_id})
    except proxmox.MissingError:
        return None
    pool: dict[str, Any] | None = found[0] if found else None
    return pool


async def _find_in_list(work: Work, pool_id: str) -> dict[str, Any] | None:
    """Look without asking for what may be missing, after which Proxmox closes the connection."""
    pools = await work.client.get("/pools")
    return next((pool for pool in pools if pool.get("poolid") == pool_id), None)


async def _create(work: Work, planned: Object) -> Object:
    pool_id = planned["pool_id"]
    state = {**planned, "id": pool_id, "members": []}
    was_there = await create_object(
        work,
        pool_id,
        sent={"comment": planned["comment"]},
        make=lambda: work.client.post("/pools", {"poolid": pool_id, "comment": planned["comment"]}),
        look=lambda: _find_in_list(work, pool_id),
    )
    work.keep(state)
    return await (_update(work, state, state) if was_there else _current(work, state))


async def _current(work: Work, state: Object) -> Object:
    pool = await _find(work, state["id"])
    return state if pool is None else {**state, **pool_values(pool)}


async def _read(work: Work, state: Object) -> Object | None:
    await note_seen(work, state["id"])
    pool = await _find(work, state["id"])
    return None if pool is None else {**state, "pool_id": state["id"], **pool_values(pool)}


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    await work.client.put("/pools", {"poolid": prior["id"], "comment": planned["comment"]})
    return await _current(work, planned)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, state["id"])
    await work.client.delete("/pools", {"poolid": state["id"]})


RESOURCE = Resource(
    names=("proxmox_virtual_environment_pool",),
    create=_create,
    read=_read,
    update=_update,
    delete=_delete,
    identify=lambda given: {"id": given, "pool_id": given},
)
