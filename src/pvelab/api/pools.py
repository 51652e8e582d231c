"""Resource pools: `/pools`, and the older `/pools/{poolid}`, which cannot name a pool inside another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.access.user_file import clean_text, lock_user_file
from pvelab.api.cluster.overview import storage_row
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.access.permissions import privileges_to_share
from pvelab.world.guests.rows import guest_row

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_pool", "delete_pool", "list_pools", "read_pool", "update_pool"]


@route("GET /pools")
def list_pools(call: Call) -> Any:
    """List the pools that the caller may see, or the one that is named."""
    # Proxmox computes the privilege for a named pool and ignores the result, so everyone may read it.
    if "poolid" in call.params:
        return [_format_pool(call)]
    return [
        {"poolid": poolid, **pool}
        for poolid, pool in sorted(call.store.items("pools").items())
        if call.may(f"/pool/{poolid}", "Pool.Audit")
    ]


@route("GET /pools/{poolid}")
def read_pool(call: Call) -> Any:
    """Answer one pool and its members."""
    return _format_pool(call)


@route("POST /pools")
def create_pool(call: Call) -> None:
    """Add a pool, below another if its name has a slash."""
    poolid, comment = call.params["poolid"], clean_text(call.params.get("comment", ""))
    with lock_user_file(call, "create pool failed"):
        if call.store.get("pools", poolid) is not None:
            raise PveError(f"pool '{poolid}' already exists")
        parent, slash, name = poolid.rpartition("/")
        if slash and call.store.get("pools", parent) is None:
            raise PveError(f"parent '{parent}' of pool '{poolid}' does not exist")
        if not (name[0].isascii() and name[0].isalpha()):
            raise PveError("pool name must start with a letter")
        call.store.put("pools", poolid, {"comment": comment} if comment else {})


@route("PUT /pools", "PUT /pools/{poolid}")
def update_pool(call: Call) -> None:
    """Change the comment of a pool, and add members or remove them."""
    params, poolid = call.params, call.params["poolid"]
    with lock_user_file(call, "update pools failed"):
        pool = dict(call.world.pools.require(poolid))
        if "comment" in params:
            pool["comment"] = clean_text(params["comment"])
            call.store.put("pools", poolid, {key: value for key, value in pool.items() if value})
        for vmid in split_list(params.get("vms", "")):
            call.check(f"/vms/{vmid}", *privileges_to_share(f"/vms/{vmid}"), any_of=True)
            _change_guest(call, poolid, int(vmid))
        for storage in split_list(params.get("storage", "")):
            call.check(f"/storage/{storage}", *privileges_to_share(f"/storage/{storage}"), any_of=True)
            _change_storage(call, poolid, storage)


@route("DELETE /pools", "DELETE /pools/{poolid}")
def delete_pool(call: Call) -> None:
    """Remove an empty pool; members that are gone themselves do not count."""
    poolid, store = call.params["poolid"], call.store
    with lock_user_file(call, "delete pool failed"):
        call.world.pools.require(poolid)
        _check_empty(call, poolid)
        for member in list(call.world.pools.members(poolid)):
            store.delete("pool_members", member)
        store.delete("pools", poolid)
        # Entries of a pool inside another outlive it in Proxmox, which looks for them one level too high.
        for path in list(store.items("acl")) if "/" not in poolid else ():
            if f"{path}/".startswith(f"/pool/{poolid}/"):
                store.delete("acl", path)


def _format_pool(call: Call) -> dict[str, Any]:
    poolid, wanted, world = call.params["poolid"], call.params.get("type"), call.world
    pool = world.pools.require(poolid)
    members = world.pools.members(poolid).values()
    guests = (world.guests.get(vmid) for vmid in sorted(str(m["vmid"]) for m in members if "vmid" in m))
    rows = []
    for guest in guests:
        if guest is not None and wanted in (None, guest["type"]):
            row = guest_row(world, guest, known=world.cluster.is_online(str(guest["node"])))
            rows.append({key: value for key, value in row.items() if key not in ("pool", "lock", "tags")})
    if wanted in (None, "storage"):
        names = sorted(str(member["storage"]) for member in members if "storage" in member)
        rows += [_storage_row(call, name) for name in names if name in world.storages.all()]
    return {"poolid": poolid, **pool, "members": rows}


def _storage_row(call: Call, storage: str) -> dict[str, Any]:
    node, config = call.world.cluster.local(), call.world.storages.config(storage)
    if not call.world.storages.is_on(config, node):
        node = sorted(split_list(str(config["nodes"])))[0]
    return storage_row(call.world, storage, node)


def _change_guest(call: Call, poolid: str, vmid: int) -> None:
    pools = call.world.pools
    present = pools.pool_of(vmid)
    if call.params.get("delete"):
        if present != poolid:
            raise PveError(f"VM {vmid} is not a pool member")
        pools.remove_guest(vmid)
        return
    if present == poolid:
        raise PveError(f"VM {vmid} is already a pool member")
    if present is not None:
        if not call.params.get("allow-move"):
            raise PveError(f"VM {vmid} belongs already to pool '{present}' and 'allow-move' is not set")
        call.check(f"/pool/{present}", "Pool.Allocate")
    pools.add_guest(poolid, vmid)


def _change_storage(call: Call, poolid: str, storage: str) -> None:
    pools = call.world.pools
    present = any(member.get("storage") == storage for member in pools.members(poolid).values())
    if call.params.get("delete"):
        if not present:
            raise PveError(f"Storage '{storage}' is not a pool member")
        pools.remove_storage(poolid, storage)
        return
    if present:
        raise PveError(f"Storage '{storage}' is already a pool member")
    pools.add_storage(poolid, storage)


def _check_empty(call: Call, poolid: str) -> None:
    for other in sorted(call.store.items("pools")):
        if other.startswith(f"{poolid}/"):
            raise PveError(f"pool '{poolid}' is not empty (contains pool '{other}')")
    members = call.world.pools.members(poolid).values()
    for vmid in sorted(str(member["vmid"]) for member in members if "vmid" in member):
        if call.world.guests.get(vmid) is not None:
            raise PveError(f"pool '{poolid}' is not empty (contains VM {vmid})")
    for storage in sorted(str(member["storage"]) for member in members if "storage" in member):
        if storage in call.world.storages.all():
            raise PveError(f"pool '{poolid}' is not empty (contains storage '{storage}')")
