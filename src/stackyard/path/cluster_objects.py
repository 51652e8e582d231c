"""What a cluster has of the kinds that a model makes besides guests and files."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.guard import ClusterObject
from stackyard.guard.subjects import short_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.desired import Desired
    from stackyard.guard import Cluster
    from stackyard.path.run import Run

__all__ = ["with_objects"]

# The type of a resource for an interface of a node, by Proxmox' word for it.
_INTERFACES = {"bridge": "network_linux_bridge", "vlan": "network_linux_vlan"}


async def with_objects(run: Run, cluster: Cluster) -> Cluster:
    """Return a cluster with what it has of the kinds in the model of a run; others are not asked about.

    What a killed run of ours was making is left out: the provider takes it over.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    client, desired = run.client, run.resolved.desired
    found = await asyncio.gather(
        _interfaces(client, {one.node for one in (*desired.bridges, *desired.vlans)}),
        _sdn(client, desired),
        _high_availability(client, desired),
        _replications(client, desired),
    )
    objects = (*cluster.objects, *(one for some in found for one in some))
    entries = () if run.served is None else run.served.journal.entries
    begun = {(short_type(entry.subject.type_name), entry.subject.name) for entry in entries}
    return dataclasses.replace(
        cluster, objects=tuple(one for one in objects if (one.kind, one.identity) not in begun)
    )


async def _interfaces(client: proxmox.Client, nodes: Iterable[str]) -> list[ClusterObject]:
    names = sorted(nodes)
    answers = await asyncio.gather(*(_list_rows(client, f"/nodes/{quote(name)}/network") for name in names))
    return [
        ClusterObject.from_name(_INTERFACES[row["type"]], f"{node}:{row['iface']}")
        for node, rows in zip(names, answers, strict=True)
        for row in rows
        if row.get("type") in _INTERFACES
    ]


async def _sdn(client: proxmox.Client, desired: Desired) -> list[ClusterObject]:
    found: list[ClusterObject] = []
    if desired.zones:
        rows = await _list_rows(client, "/cluster/sdn/zones")
        found += [ClusterObject.from_name(f"sdn_zone_{row['type']}", row["zone"]) for row in rows]
    vnets: set[str] = set()
    if desired.vnets or desired.subnets:
        vnets = {row["vnet"] for row in await _list_rows(client, "/cluster/sdn/vnets")}
        found += [ClusterObject.from_name("sdn_vnet", vnet) for vnet in sorted(vnets)]
    for vnet in sorted(vnets.intersection(subnet.vnet for subnet in desired.subnets)):
        rows = await _list_rows(client, f"/cluster/sdn/vnets/{quote(vnet)}/subnets")
        found += [_subnet(vnet, row) for row in rows]
    return found


def _subnet(vnet: str, row: Mapping[str, Any]) -> ClusterObject:
    # Made by its network, and known by a name with its zone from then on.
    name = str(row["subnet"])
    cidr = str(row.get("cidr") or name.partition("-")[2].replace("-", "/"))
    return ClusterObject(
        kind="sdn_subnet", identity=f"{vnet}/{cidr}", import_id=f"{vnet}/{name}", state_id=name
    )


async def _high_availability(client: proxmox.Client, desired: Desired) -> list[ClusterObject]:
    found: list[ClusterObject] = []
    if any(guest.ha is not None for guest in desired.guests):
        rows = await _list_rows(client, "/cluster/ha/resources")
        found += [ClusterObject.from_name("haresource", row["sid"]) for row in rows]
    if desired.affinities:
        found += [
            ClusterObject.from_name("harule", row["rule"])
            for row in await _list_rows(client, "/cluster/ha/rules")
        ]
    return found


async def _replications(client: proxmox.Client, desired: Desired) -> list[ClusterObject]:
    if not any(guest.replication for guest in desired.guests):
        return []
    rows = await _list_rows(client, "/cluster/replication")
    # One that is about to be removed is waited for by the provider.
    return [ClusterObject.from_name("replication", row["id"]) for row in rows if not row.get("remove_job")]


async def _list_rows(client: proxmox.Client, path: str) -> list[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = await client.get(path)
    except proxmox.RefusedError:
        # What we may not look at, and what a release of Proxmox does not have, is for the provider to report.
        return []
    return rows
