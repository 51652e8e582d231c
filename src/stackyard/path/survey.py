"""What a cluster has, read once for a plan."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.fields.guest import split_tags
from stackyard.guard import Cluster, ClusterGuest, ClusterObject, Node, Storage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stackyard.clients.proxmox import Client

__all__ = ["survey"]

_THIN = frozenset(("lvmthin", "zfspool", "rbd", "btrfs"))


async def survey(client: Client, nodes: Iterable[str], vm_ids: Collection[int] = ()) -> Cluster:
    """Read what the guard asks about.

    Args:
        client: Speaks to the cluster.
        nodes: The nodes whose bridges matter.
        vm_ids: Guests whose nodes matter too, wherever they run by now.

    Raises:
        ProxmoxError: The cluster does not answer, or not to us.
    """
    rows: list[Mapping[str, Any]] = await client.get("/cluster/resources")
    online = {row["node"] for row in rows if row["type"] == "node" and row.get("status") == "online"}
    used = {row["node"] for row in rows if row.get("vmid") in vm_ids}
    wanted = sorted(online.intersection({*nodes, *used}))
    bridges = dict(zip(wanted, await asyncio.gather(*(_bridges(client, n) for n in wanted)), strict=True))
    return Cluster(
        nodes=tuple(
            Node(
                name=row["node"],
                memory_bytes=int(row.get("maxmem", 0)),
                bridges=bridges.get(row["node"], frozenset()),
                is_online=row["node"] in online,
                processors=int(row.get("maxcpu") or 0),
            )
            for row in rows
            if row["type"] == "node"
        ),
        storages=tuple(_storage(row) for row in rows if row["type"] == "storage"),
        guests=tuple(_guest(row) for row in rows if row["type"] in ("qemu", "lxc")),
        objects=tuple(ClusterObject.from_name("pool", row["pool"]) for row in rows if row["type"] == "pool"),
    )


async def _bridges(client: Client, node: str) -> frozenset[str]:
    # Bridges of the node and vnets of the SDN alike.
    rows = await client.get(f"/nodes/{quote(node)}/network", {"type": "any_bridge"})
    return frozenset(row["iface"] for row in rows)


def _storage(row: Mapping[str, Any]) -> Storage:
    total, used = int(row.get("maxdisk", 0)), int(row.get("disk", 0))
    return Storage(
        name=row["storage"],
        node=row["node"],
        free_bytes=max(0, total - used),
        total_bytes=total,
        is_shared=bool(row.get("shared")),
        is_thin=row.get("plugintype") in _THIN,
        type=str(row.get("plugintype") or ""),
        contents=frozenset(filter(None, str(row.get("content") or "").split(","))),
    )


def _guest(row: Mapping[str, Any]) -> ClusterGuest:
    is_running = row.get("status") == "running"
    return ClusterGuest(
        vm_id=int(row["vmid"]),
        name=str(row.get("name", "")),
        node=row["node"],
        kind=row["type"],
        memory_bytes=int(row.get("maxmem", 0)) if is_running else 0,
        uptime_s=int(row.get("uptime") or 0) if is_running else 0,
        is_template=bool(row.get("template")),
        tags=frozenset(split_tags(row.get("tags"))),
    )
