"""The cluster: `/cluster/nextid`, `/cluster/status`, `/cluster/resources`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.status import network_rows
from pvelab.api.nodes.status import node_row
from pvelab.server.problems import bad_parameter
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.world import World

__all__ = ["list_resources", "next_id", "read_status", "storage_row"]

_LOWER, _UPPER = 100, 1_000_000


@route("GET /cluster/nextid")
def next_id(call: Call) -> Any:
    """Answer the next free vmid, or whether a given one is free."""
    wanted = call.params.get("vmid")
    if wanted is not None:
        if call.world.guests.get(wanted) is not None:
            raise bad_parameter("vmid", f"VM {wanted} already exists")
        return str(wanted)
    options = call.store.get("cluster", "options") or {}
    limits = options.get("next-id") or {}
    return str(call.world.guests.next_free(limits.get("lower", _LOWER), limits.get("upper", _UPPER)))


@route("GET /cluster/status")
def read_status(call: Call) -> Any:
    """Answer which nodes are up and whether the cluster is quorate."""
    cluster = call.world.cluster
    nodes = cluster.nodes()
    alone = len(nodes) == 1
    rows: list[dict[str, Any]] = []
    if not alone:
        rows.append(
            {
                "type": "cluster",
                "id": "cluster",
                "name": cluster.name,
                "version": len(nodes),
                "nodes": len(nodes),
                "quorate": int(cluster.is_quorate),
            }
        )
    for name, node in nodes.items():
        # Without quorum the members are not known to each other, so none is shown as online.
        online = cluster.is_online(name) and (alone or cluster.is_quorate)
        rows.append(
            {
                "type": "node",
                "id": f"node/{name}",
                "name": name,
                "ip": node["ip"],
                "local": int(name == cluster.local()),
                "nodeid": 0 if alone else node["nodeid"],
                "online": int(online),
                "level": "",
            }
        )
    return rows


@route("GET /cluster/resources")
def list_resources(call: Call) -> Any:
    """List nodes, storages, pools, guests and networks, each to who may see it."""
    wanted = call.params.get("type")
    rows: list[Any] = []
    if wanted is None:
        rows += _pools(call)
    if wanted in (None, "vm"):
        rows += _guests(call)
    if wanted in (None, "node"):
        rows += [
            node_row(call.world, node, figures=call.may(f"/nodes/{node}", "Sys.Audit"))
            for node in call.world.cluster.nodes()
        ]
    if wanted in (None, "storage"):
        rows += _storages(call)
    if wanted in (None, "network"):
        rows += network_rows(call)
    return rows


def _guests(call: Call) -> list[Any]:
    world = call.world
    online = {node: world.cluster.is_online(node) for node in world.cluster.nodes()}
    if call.sees_all:
        return list(world.rows.all(world, online))
    return [
        world.rows.get(world, guest, known=online.get(str(guest["node"]), False))
        for guest in world.guests.all().values()
        if call.may(f"/vms/{guest['vmid']}", "VM.Audit")
    ]


def _pools(call: Call) -> list[dict[str, Any]]:
    return [
        {"id": f"/pool/{pool}", "pool": pool, "type": "pool"}
        for pool in call.store.items("pools")
        if call.may(f"/pool/{pool}", "Pool.Audit")
    ]


def _storages(call: Call) -> list[dict[str, Any]]:
    world = call.world
    return [
        storage_row(world, storage, node)
        for storage, config in world.storages.all().items()
        if call.may(f"/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace", any_of=True)
        and not config.get("disable")
        for node in world.cluster.nodes()
        if world.storages.is_on(config, node)
    ]


def storage_row(world: World, storage: str, node: str) -> dict[str, Any]:
    """Return what lists tell of a storage on a node."""
    config = world.storages.config(storage)
    row = {
        "id": f"storage/{node}/{storage}",
        "storage": storage,
        "node": node,
        "type": "storage",
        "plugintype": config["type"],
        "status": "unknown",
        "shared": int(world.storages.is_shared(config)),
        "content": ",".join(world.storages.content_types(config)),
    }
    if world.cluster.is_online(node) and world.storages.is_online(config, node):
        row |= {
            "status": "available",
            "maxdisk": world.storages.total(storage, node),
            "disk": world.storages.used(storage, node),
        }
    return row
