"""The whole of a cluster as the document of a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.exporting.access import access_calls, pool_calls, pool_members
from pvelab.exporting.firewall import firewall_calls
from pvelab.exporting.guests import read_guests
from pvelab.exporting.nodes import node_calls, read_nodes
from pvelab.exporting.objects import list_base_calls, list_group_calls, list_guest_calls
from pvelab.exporting.storages import read_capacities, read_storages, read_volumes

if TYPE_CHECKING:
    from pvelab.exporting.read import Source

__all__ = ["export_seed"]


async def export_seed(source: Source) -> dict[str, Any]:
    """Read a cluster and return the document of a seed that is a copy of it.

    What could not be read is in `source.left_out` afterwards.

    Args:
        source: The cluster.

    Raises:
        PveError: Not even its nodes and guests can be read.
    """
    status = await source.require("/cluster/status")
    resources = await source.require("/cluster/resources")
    online = [
        str(row["node"]) for row in resources if row["type"] == "node" and row.get("status") == "online"
    ]
    guests = sorted(
        (row for row in resources if row["type"] in ("qemu", "lxc") and row["node"] in online),
        key=lambda row: int(row["vmid"]),
    )
    for row in resources:
        if row["type"] in ("qemu", "lxc") and row["node"] not in online:
            source.note(f"{row['type']}/{row['vmid']}", f"node '{row['node']}' is not online")
    storages = await read_storages(source)
    document: dict[str, Any] = {}
    name = next((str(row["name"]) for row in status if row["type"] == "cluster"), None)
    if name is not None:
        document["cluster"] = name
    document["nodes"] = await read_nodes(source, status, resources)
    document["storages"] = storages
    document["capacities"] = await read_capacities(source, online, storages)
    document["volumes"] = await read_volumes(source, online, storages)
    document["guests"] = await read_guests(source, guests)
    groups = await list_group_calls(source)
    document["ha_groups"] = bool(groups)
    document["calls"] = await _list_calls(source, online, guests, groups)
    return {key: value for key, value in document.items() if value}


async def _list_calls(
    source: Source, online: list[str], guests: list[dict[str, Any]], groups: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    return [
        *await access_calls(source),
        *await pool_calls(source),
        *await list_base_calls(source),
        *await node_calls(source, online),
        *await pool_members(source),
        *groups,
        *await list_guest_calls(source),
        *await firewall_calls(source, online, guests),
    ]
