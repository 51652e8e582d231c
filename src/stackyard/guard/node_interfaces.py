"""Whether interfaces fit the node that they are made on: its cards, bridges, VLANs and addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.suggestions import did_you_mean
from stackyard.guard.cluster_names import NO_OBJECT, say_known
from stackyard.guard.declared import BRIDGE
from stackyard.guard.facts import VNETS, rights_on
from stackyard.guard.findings import UNKNOWN, Finding
from stackyard.guard.names_used.interfaces import (
    INTERFACE,
    interfaces_of,
    list_planned,
    list_zones,
    read_row,
)
from stackyard.guard.rights import bridge_path
from stackyard.sources.hypervisor.checks.addresses import BAD_GATEWAY, OVERLAP, overlap
from stackyard.sources.hypervisor.checks.interfaces import BAD_VLAN, IN_TWO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.base.diagnostics import Kind
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import ApiRead, Facts
    from stackyard.guard.implied import ImpliedCalls
    from stackyard.guard.names_used.interfaces import PlannedInterface, PlannedZone

__all__ = ["ask_node_interfaces", "find_node_interfaces"]

_SEEING = ("SDN.Use", "SDN.Audit")
# A VLAN of a card or bond needs no entry of its own to be a port.
_TAGGED = re.compile(r"(\S+)\.\d+")


def _list_new(implied: ImpliedCalls) -> list[PlannedInterface]:
    return [one for one in list_planned(implied.desired) if one.label not in implied.unchanged]


def _list_zones(implied: ImpliedCalls) -> list[PlannedZone]:
    return [one for one in list_zones(implied.desired) if one.label not in implied.unchanged]


def ask_node_interfaces(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the interfaces of the nodes, and for whether the token would see their bridges."""
    new, zones = _list_new(implied), _list_zones(implied)
    nodes = {one.node for one in new}
    for zone in zones:
        nodes |= {*zone.nodes} or {node.name for node in cluster.nodes}
    online = {node.name for node in cluster.nodes if node.is_online}
    yield from map(interfaces_of, sorted(nodes & online))
    for bridge in {*(one.parent for one in new if one.parent), *(zone.bridge for zone in zones)}:
        yield from rights_on(bridge_path(bridge, {}))
        yield VNETS


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeView:
    """The interfaces of a node.

    Attributes:
        there: Those that it has.
        after: Those that it will have: those of the target in place of its own.
        facts: What else the cluster tells.
        implied: What the plan does.
    """

    there: Mapping[str, PlannedInterface]
    after: Mapping[str, PlannedInterface]
    facts: Facts
    implied: ImpliedCalls

    def has(self, name: str) -> bool:
        """Return whether there will be an interface of a name."""
        return name in self.after or any(name in one.others for one in self.after.values())


def _view(node: str, implied: ImpliedCalls, facts: Facts) -> _NodeView | None:
    """Return the interfaces of a node; None where it does not tell."""
    question = interfaces_of(node)
    if not isinstance(facts.answers.get(question), list):
        return None
    going = {name for kind, where, name in implied.leaving if kind.startswith(INTERFACE) and where == node}
    there = {one.name: one for one in (read_row(node, row) for row in facts.rows(question))}
    kept = {name: one for name, one in there.items() if name not in going}
    mine = {one.name: one for one in list_planned(implied.desired) if one.node == node}
    return _NodeView(there=there, after={**kept, **mine}, facts=facts, implied=implied)


def find_node_interfaces(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report interfaces that a node does not have or that are taken, and addresses that overlap its own."""
    new = _list_new(implied)
    views = {node: _view(node, implied, facts) for node in {one.node for one in new}}
    for one in new:
        view = views[one.node]
        if view is not None:
            yield from _find_ports(one, view)
            yield from _find_parent(one, view)
            yield from _find_addresses(one, view)
    for zone in _list_zones(implied):
        yield from _find_bridge(zone, implied, facts)


def _found(kind: Kind, one: PlannedInterface, detail: str, *field: str | int) -> Finding:
    return Finding(kind=kind, detail=detail, label=one.label, field=field)


def _find_ports(one: PlannedInterface, view: _NodeView) -> Iterator[Finding]:
    """Report ports and slaves that are missing, or in another interface."""
    before = view.there.get(one.name)
    attribute = "slaves" if one.kind == "bond" else "ports"
    for index, port in enumerate(one.ports):
        if before is not None and port in before.ports:
            continue
        tagged = _TAGGED.fullmatch(port) if one.kind == "bridge" else None
        if not view.has(port) and not (tagged is not None and view.has(tagged[1])):
            known = sorted(view.there)
            detail = f"{one.name} of {one.node} uses the interface {port}; the node has {say_known(known)}."
            yield _found(NO_OBJECT, one, f"{detail}{did_you_mean(port, known)}", attribute, index)
        # Two of the target that have the same port are reported with the files.
        users = (name for name, other in view.after.items() if port in other.ports and not other.label)
        user = next((name for name in users if name != one.name), None)
        if user is not None:
            detail = f"{port} is in {user} of {one.node}, and would be in {one.name}."
            yield _found(IN_TWO, one, detail, attribute, index)


def _find_parent(one: PlannedInterface, view: _NodeView) -> Iterator[Finding]:
    """Report VLANs on an interface that is missing, or that passes none, and numbers that are taken."""
    if not one.parent or one.name in view.there:
        return
    below = view.after.get(one.parent)
    if below is None and not view.has(one.parent):
        known = sorted(view.there)
        detail = f"{one.name} of {one.node} is on {one.parent}"
        if view.facts.may(bridge_path(one.parent, view.facts.zones()), *_SEEING) is not True:
            detail += "; whether the node has it is not known: the token may not see that bridge."
            yield _found(UNKNOWN, one, detail, "interface")
        else:
            detail += f"; the node has {say_known(known)}."
            yield _found(NO_OBJECT, one, f"{detail}{did_you_mean(one.parent, known)}", "interface")
    # What the target declares itself is reported with the files.
    elif below is not None and below.kind == "bridge" and not below.is_aware and not below.label:
        detail = f"{one.name} is on {one.parent} of {one.node}, which is not VLAN-aware."
        yield _found(BAD_VLAN, one, detail, "interface")
    for other in view.after.values():
        is_same = one.number is not None and (other.parent, other.number) == (one.parent, one.number)
        if is_same and not other.label:
            detail = f"{other.name} of {one.node} is the VLAN {one.number} of {one.parent} already."
            yield _found(BAD_VLAN, one, detail, "vlan")


def _find_addresses(one: PlannedInterface, view: _NodeView) -> Iterator[Finding]:
    """Report addresses that overlap, and second gateways, of interfaces that the target does not have."""
    before = view.there.get(one.name)
    others = [other for other in view.after.values() if not other.label]
    for attribute, mine in one.addresses.items():
        if before is not None and before.addresses.get(attribute) == mine:
            continue
        for other in others:
            theirs = other.addresses.get(attribute)
            if theirs is not None and overlap(theirs.network, mine.network):
                detail = f"{mine} of {one.name} overlaps {theirs}, which {other.name} of {one.node} has."
                yield _found(OVERLAP, one, detail, attribute)
    for attribute, gateway in one.gateways.items():
        if before is not None and attribute in before.gateways:
            continue
        has = next((other for other in others if attribute in other.gateways), None)
        if has is not None:
            detail = f"{one.name} has the gateway {gateway}; {has.name} of {one.node} has one already."
            yield _found(BAD_GATEWAY, one, detail, attribute)


def _find_bridge(zone: PlannedZone, implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report the bridge of a zone that a node of it lacks; where it names no nodes, one with it is enough."""
    nodes = zone.nodes or tuple(node.name for node in facts.cluster.nodes if node.is_online)
    views = {node: view for node in nodes if (view := _view(node, implied, facts)) is not None}
    # Proxmox takes a zone before its bridge: a bridge that another target makes may follow.
    lacking = [
        node
        for node, view in views.items()
        if not view.has(zone.bridge) and not implied.declared.has(BRIDGE, zone.bridge, node)
    ]
    # A vnet may carry a zone as well.
    if not lacking or (not zone.nodes and len(lacking) < len(nodes)) or zone.bridge in facts.zones():
        return
    detail = f"The SDN zone {zone.name} lies on the bridge {zone.bridge}"
    if facts.may(bridge_path(zone.bridge, facts.zones()), *_SEEING) is not True:
        detail += "; whether there is one is not known: the token may not see it."
        yield Finding(kind=UNKNOWN, detail=detail, label=zone.label, field=("bridge",))
        return
    for node in lacking:
        known = [name for name, one in views[node].after.items() if one.is_bridge]
        why = implied.declared.explain(BRIDGE, zone.bridge, node, known)
        text = f"{detail}; {node} has {say_known(known)}.{why}"
        yield Finding(kind=NO_OBJECT, detail=text, label=zone.label, field=("bridge",))
