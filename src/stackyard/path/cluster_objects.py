"""What a cluster has of the kinds that a model makes besides guests and files."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.guard import ClusterObject
from stackyard.guard.subjects import short_type
from stackyard.render.protection import FIREWALL_ALIAS, FIREWALL_RULES, FIREWALL_SET, list_protection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.desired import Desired
    from stackyard.guard import Cluster, ClusterGuest
    from stackyard.path.known_state import KnownState
    from stackyard.path.run import Run

__all__ = ["with_objects"]

# Where the firewall of a guest has what a type of resource is.
_LISTS = {FIREWALL_RULES: "rules", FIREWALL_ALIAS: "aliases", FIREWALL_SET: "ipset"}
# The type of a resource for an interface of a node, by Proxmox' word for it.
_INTERFACES = {
    "bridge": "network_linux_bridge",
    "bond": "network_linux_bond",
    "vlan": "network_linux_vlan",
}


async def with_objects(run: Run, cluster: Cluster, known: KnownState) -> Cluster:
    """Return a cluster with what it has of the kinds in the model of a run; others are not asked about.

    What a killed run of ours was making is left out: the provider takes it over.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    client, desired = run.client, run.resolved.desired
    nodes = {one.node for one in (*desired.bridges, *desired.vlans)}
    nodes |= {
        str(one.attributes["node_name"])
        for one in desired.objects
        if short_type(one.key.type) in _INTERFACES.values()
    }
    found = await asyncio.gather(
        _interfaces(client, nodes),
        _sdn(client, desired),
        _high_availability(client, desired),
        _replications(client, desired),
        _firewalls(client, desired, cluster, known),
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


async def _firewalls(
    client: proxmox.Client, desired: Desired, cluster: Cluster, known: KnownState
) -> list[ClusterObject]:
    """Return what guests have of firewalls that the state does not know yet."""
    there = {guest.vm_id: guest for guest in cluster.guests}
    asked = []
    for guest in desired.guests:
        now = there.get(guest.vm_id or 0)
        wanted = {part.type for part in list_protection(guest) if part.address not in known.instances}
        if now is not None and not wanted.isdisjoint(_LISTS):
            asked += [_list_firewall(client, now, kind) for kind in sorted(wanted & _LISTS.keys())]
    return [one for some in await asyncio.gather(*asked) for one in some]


async def _list_firewall(client: proxmox.Client, guest: ClusterGuest, kind: str) -> list[ClusterObject]:
    rows = await _list_rows(
        client, f"/nodes/{quote(guest.node)}/{guest.kind}/{guest.vm_id}/firewall/{_LISTS[kind]}"
    )
    scope = f"{'vm' if guest.kind == 'qemu' else 'container'}/{guest.node}/{guest.vm_id}"
    if kind == FIREWALL_RULES:
        identity = f"{guest.vm_id}/rules"
        found = [ClusterObject(kind=short_type(kind), identity=identity, import_id=scope, state_id=identity)]
        return found if rows else []
    # In a state they have names that those of other guests have too; the guest itself tells the owner.
    return [
        ClusterObject(
            kind=short_type(kind),
            identity=(own := f"{guest.vm_id}/{row['name']}"),
            import_id=f"{scope}/{row['name']}",
            state_id=own,
        )
        for row in rows
    ]


async def _list_rows(client: proxmox.Client, path: str) -> list[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = await client.get(path)
    except proxmox.RefusedError:
        # What we may not look at, and what a release of Proxmox does not have, is for the provider to report.
        return []
    return rows
