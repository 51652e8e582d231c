"""What a cluster has of the kinds that a model makes besides guests and files."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.clients import proxmox
from stackyard.clients.proxmox import quote
from stackyard.guard import ClusterObject
from stackyard.guard.subjects import CLUSTER, scope_of_rules, short_type
from stackyard.path.importing.hypervisor.lists import LISTS
from stackyard.path.importing.hypervisor.survey import list_rows
from stackyard.render.objects import address_of_object
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
        _declared(client, desired, known),
    )
    objects = (*cluster.objects, *(one for some in found for one in some))
    entries = () if run.served is None else run.served.journal.entries
    begun = {(short_type(entry.subject.type_name), entry.subject.name.lower()) for entry in entries}
    return dataclasses.replace(
        cluster,
        objects=tuple(
            one
            for one in objects
            if begun.isdisjoint((one.kind, name.lower()) for name in (one.identity, one.import_id))
        ),
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


async def _declared(client: proxmox.Client, desired: Desired, known: KnownState) -> list[ClusterObject]:
    """Return what a cluster has of the kinds of objects in hypervisor files that the state does not know."""
    new = {
        short_type(one.key.type)
        for one in desired.objects
        if address_of_object(one.key) not in known.instances
    }
    scopes = {
        scope_of_rules(one.attributes)
        for one in desired.objects
        if one.key.type == FIREWALL_RULES and address_of_object(one.key) not in known.instances
    }
    answers = await asyncio.gather(
        *(_list_kind(client, kind) for kind in sorted(new & LISTS.keys())),
        *(_list_rules(client, scope) for scope in sorted(scopes)),
    )
    return [one for some in answers for one in some]


async def _list_rules(client: proxmox.Client, scope: str) -> list[ClusterObject]:
    """Return the rules of the cluster or of a node as one object, where there are any."""
    path = "/cluster" if scope == CLUSTER else f"/nodes/{quote(scope.partition('/')[2])}"
    rows = await _list_rows(client, f"{path}/firewall/rules")
    return [ClusterObject.from_name(short_type(FIREWALL_RULES), scope)] if rows else []


async def _list_kind(client: proxmox.Client, kind: str) -> list[ClusterObject]:
    listing = LISTS[kind]
    if not listing.path or "{node}" in listing.path:
        return []
    try:
        rows = [row async for row in list_rows(client, listing, {})]
    except proxmox.RefusedError:
        return []
    return [_found(kind, listing.given.format_map(row), row) for row in rows]


def _found(kind: str, import_id: str, row: Mapping[str, Any]) -> ClusterObject:
    if kind == "sdn_subnet":
        return _subnet(str(row["vnet"]), row)
    is_named_once = kind.startswith("firewall_")
    identity = import_id.lower() if is_named_once else import_id
    return ClusterObject(kind=kind, identity=identity, import_id=import_id, state_id=import_id)


async def _list_rows(client: proxmox.Client, path: str) -> list[Mapping[str, Any]]:
    try:
        rows: list[Mapping[str, Any]] = await client.get(path)
    except proxmox.RefusedError:
        # What we may not look at, and what a release of Proxmox does not have, is for the provider to report.
        return []
    return rows
