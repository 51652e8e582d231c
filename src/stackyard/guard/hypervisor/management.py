"""The address by which a node is managed: which interfaces carry it, and which changes of them may cut it."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.clients.proxmox import quote
from stackyard.engine.changes import Action
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.hypervisor.cluster_uses import lower_interfaces
from stackyard.guard.interruption import is_note, list_interface_changes
from stackyard.guard.subjects import name_in, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Change, Changes
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = [
    "ALLOW_MANAGEMENT_NETWORK",
    "CUTS_MANAGEMENT",
    "STATUS",
    "ask_interfaces",
    "find_address",
    "find_cuts",
]

ALLOW_MANAGEMENT_NETWORK = "--allow-management-network"
CUTS_MANAGEMENT = Kind(
    code="E-GUARD-CUTS-MANAGEMENT",
    summary="The address by which a node is managed may be cut off",
    remedy="Make sure that the node stays reachable, then name it with --allow-management-network. The "
    "change is then made with a timer on the node that puts the old network back unless the node answers.",
)

STATUS = ApiRead("/cluster/status", is_optional=True)


def _interfaces_of(node: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(node)}/network", is_optional=True)


def _by_node(changes: Changes) -> dict[str, list[Change]]:
    """Return what a plan does to the interfaces of each node, comments left out."""
    found = list_interface_changes(changes).items()
    return {node: kept for node, mine in found if (kept := [one for one in mine if not is_note(one)])}


def ask_interfaces(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Read the addresses and interfaces of the nodes whose network a plan changes."""
    for node in _by_node(implied.changes):
        found = cluster.node(node)
        yield STATUS
        if found is not None and found.is_online:
            yield _interfaces_of(node)


def find_address(node: str, facts: Facts) -> str:
    """Return the address that the cluster has for a node; empty where that is not known."""
    for row in facts.rows(STATUS):
        if row.get("type") == "node" and row.get("name") == node:
            return str(row.get("ip") or "")
    return ""


def find_cuts(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report each node whose management address a plan may cut off."""
    for node, changes in sorted(_by_node(implied.changes).items()):
        rows = {str(row.get("iface")): row for row in facts.rows(_interfaces_of(node))}
        addresses = {find_address(node, facts)} - {""}
        if facts.operator is not None and facts.operator.endpoint in _list_addresses(rows):
            addresses.add(facts.operator.endpoint)
        carriers = [name for name, row in rows.items() if not _own_addresses(row).isdisjoint(addresses)]
        detail = ""
        if not carriers:
            names = ", ".join(sorted(_name(change) for change in changes))
            detail = f"Which interface of {node} has its address is not known, and {names} would change."
        elif cut := _list_cuts(changes, _list_below(carriers, rows), addresses, rows):
            shown = ", ".join(sorted(addresses))
            detail = f"{node} is managed over {shown} on {', '.join(sorted(carriers))}: {'; '.join(cut)}."
        if detail:
            permit = Permit(option=ALLOW_MANAGEMENT_NETWORK, name=node)
            yield Finding(kind=CUTS_MANAGEMENT, detail=detail, permit=permit)


def _own_addresses(row: Mapping[str, Any]) -> set[str]:
    keys = ("address", "address6", "cidr", "cidr6")
    return {str(row[key]).partition("/")[0] for key in keys if row.get(key)}


def _list_addresses(rows: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {address for row in rows.values() for address in _own_addresses(row)}


def _list_below(carriers: list[str], rows: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the interfaces that carry the address, all that they stand on, and those with a gateway."""
    found: set[str] = set()
    waiting = [*carriers, *(name for name, row in rows.items() if row.get("gateway") or row.get("gateway6"))]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += lower_interfaces(rows.get(name, {"iface": name}))
    return found


def _list_cuts(
    changes: list[Change], carrying: set[str], addresses: set[str], rows: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return what may cut the address, in words."""
    networks = [
        ipaddress.ip_network(str(row[key]), strict=False)
        for row in rows.values()
        for key in ("cidr", "cidr6")
        if row.get(key) and str(row[key]).partition("/")[0] in addresses
    ]
    found = []
    for change in sorted(changes, key=_name):
        name, after = _name(change), change.after or {}
        if name in carrying:
            found.append(f"{name} would be {_verb(change)}")
        elif taken := carrying.intersection(_ports(after)):
            found.append(f"{name} would take {', '.join(sorted(taken))}")
        elif any(_is_in(after.get(key), networks) for key in ("address", "address6")):
            found.append(f"{name} would get an address of the same network")
        elif after.get("gateway") or after.get("gateway6"):
            found.append(f"{name} would get a gateway")
    return found


def _verb(change: Change) -> str:
    if change.action is Action.UPDATE:
        return f"changed ({', '.join(sorted({str(one.path[0]) for one in change.differences}))})"
    return {Action.DELETE: "removed", Action.REPLACE: "replaced"}.get(change.action, "created")


def _ports(after: Mapping[str, Any]) -> set[str]:
    """Return the interfaces that a bridge or bond takes for itself; a VLAN leaves its own as it is."""
    listed = [*(after.get("ports") or ()), *(after.get("slaves") or ())]
    return {str(one) for one in listed}


def _is_in(address: Any, networks: list[Any]) -> bool:
    try:
        given = ipaddress.ip_interface(str(address or "")).ip
    except ValueError:
        return False
    return any(given in network for network in networks)


def _name(change: Change) -> str:
    return name_in(short_kind(change), change.before or change.after or {})
