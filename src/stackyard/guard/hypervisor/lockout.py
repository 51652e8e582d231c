"""A firewall that shuts out who runs this: our address, held against the rules of each node."""

from __future__ import annotations

import ipaddress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.clients.proxmox import quote
from stackyard.engine.changes import Action
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.hypervisor.firewall import Connection, Firewall, NodeFirewall, Rule, admits
from stackyard.guard.hypervisor.management import STATUS, find_address
from stackyard.guard.subjects import node_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.engine.changes import Change, Changes
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["ALLOW_LOCKOUT", "SHUTS_OUT", "ask_firewall", "find_lockouts", "follow_firewall"]

ALLOW_LOCKOUT = "--allow-lockout"
SHUTS_OUT = Kind(
    code="E-GUARD-SHUTS-OUT",
    summary="The firewall of a node would no longer let this machine in, or nobody can tell",
    remedy="Add the address of this machine to the ipset `management`, or a rule that accepts it on ports "
    "22 and 8006; where another way into the node is certain, name the node with --allow-lockout.",
)

_KINDS = (
    *("cluster_firewall", "cluster_firewall_security_group", "firewall_alias", "firewall_ipset"),
    *("firewall_rules", "node_firewall"),
)
_HARMLESS = (Action.NOTHING, Action.READ, Action.FORGET)
_API, _SSH = 8006, 22
_BASE = "/cluster/firewall"
OPTIONS = ApiRead(f"{_BASE}/options", is_optional=True)
RULES = ApiRead(f"{_BASE}/rules", is_optional=True)
GROUPS = ApiRead(f"{_BASE}/groups", is_optional=True)
SETS = ApiRead(f"{_BASE}/ipset", is_optional=True)
ALIASES = ApiRead(f"{_BASE}/aliases", is_optional=True)


def _below(question: ApiRead, name: str) -> ApiRead:
    return ApiRead(f"{question.path}/{quote(name)}", is_optional=True)


def _of_node(node: str, part: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(node)}/firewall/{part}", is_optional=True)


def _interfaces_of(node: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(node)}/network", is_optional=True)


def _list_changes(changes: Changes) -> list[Change]:
    """Return what a plan does to the firewall of the cluster or a node, and not to that of a guest."""
    return [
        change
        for change in changes.planned
        if short_kind(change) in _KINDS
        and change.action not in _HARMLESS
        and not any((change.after or change.before or {}).get(key) for key in ("vm_id", "container_id"))
    ]


def ask_firewall(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Read the firewall, where a plan changes it."""
    if _list_changes(implied.changes):
        yield from (OPTIONS, RULES, GROUPS, SETS, ALIASES, STATUS)
        for node in cluster.nodes:
            if node.is_online:
                yield from (_of_node(node.name, "options"), _of_node(node.name, "rules"))
                yield _interfaces_of(node.name)


def follow_firewall(implied: ImpliedCalls, facts: Facts) -> Iterator[ApiRead]:
    """Read what is in the groups and sets."""
    if _list_changes(implied.changes):
        yield from (_below(GROUPS, str(row.get("group"))) for row in facts.rows(GROUPS))
        yield from (_below(SETS, str(row.get("name"))) for row in facts.rows(SETS))


def find_lockouts(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report each node that would not let this machine in any more, and each where nobody can tell."""
    changes = _list_changes(implied.changes)
    if not changes or facts.operator is None:
        return
    before = _read_firewall(facts)
    after = _apply(before, changes)
    for node in facts.cluster.nodes:
        own = _read_node(node.name, facts)
        then = _apply_to_node(own, node.name, changes)
        for what, source, port in (("API", facts.operator.api, _API), ("SSH", facts.operator.ssh, _SSH)):
            connection = Connection(source=source, port=port)
            was, will = admits(before, own, connection), admits(after, then, connection)
            if will is True or (was is False and will is False):
                continue
            told = "would not be accepted any more" if will is False else "may be shut out: nobody can tell"
            yield Finding(
                kind=SHUTS_OUT,
                detail=f"On {node.name}, {what} (port {port}) from {source or 'this machine'} {told}.",
                permit=Permit(option=ALLOW_LOCKOUT, name=node.name),
            )


def _read_firewall(facts: Facts) -> Firewall:
    options = facts.answers.get(OPTIONS)
    known: Mapping[str, Any] = options if isinstance(options, dict) else {}
    return Firewall(
        is_enabled=_flag(known.get("enable", 0)) if known or isinstance(options, dict) else True,
        policy=str(known.get("policy_in") or "DROP"),
        rules=_read_rules(RULES, facts),
        groups={
            str(row.get("group")).lower(): _read_rules(_below(GROUPS, str(row.get("group"))), facts) or ()
            for row in facts.rows(GROUPS)
        },
        sets={
            str(row.get("name")).lower(): tuple(
                f"{'!' if _flag(entry.get('nomatch', 0)) else ''}{entry.get('cidr')}"
                for entry in facts.rows(_below(SETS, str(row.get("name"))))
            )
            for row in facts.rows(SETS)
        },
        aliases={str(row.get("name")).lower(): str(row.get("cidr")) for row in facts.rows(ALIASES)},
    )


def _read_node(name: str, facts: Facts) -> NodeFirewall:
    options = facts.answers.get(_of_node(name, "options"))
    known: Mapping[str, Any] = options if isinstance(options, dict) else {}
    address = find_address(name, facts)
    return NodeFirewall(
        address=address,
        network=_find_network(address, facts.rows(_interfaces_of(name))),
        is_enabled=_flag(known.get("enable", 1)),
        rules=_read_rules(_of_node(name, "rules"), facts),
    )


def _find_network(address: str, interfaces: Iterable[Mapping[str, Any]]) -> Any:
    """Return the network that an address of a node is in."""
    for row in interfaces:
        for key in ("cidr", "cidr6"):
            cidr = str(row.get(key) or "")
            if address and cidr.partition("/")[0] == address:
                return ipaddress.ip_network(cidr, strict=False)
    return None


def _read_rules(question: ApiRead, facts: Facts) -> tuple[Rule, ...] | None:
    if not isinstance(facts.answers.get(question), list):
        return None
    rows = sorted(facts.rows(question), key=lambda row: int(row.get("pos", 0)))
    return tuple(
        Rule(
            action="" if row.get("type") == "group" else str(row.get("action") or ""),
            group=str(row.get("action") or "").lower() if row.get("type") == "group" else "",
            direction=str(row.get("type") or "in"),
            is_enabled=_flag(row.get("enable", 0)),
            **{name: str(row.get(name) or "") for name in _MATCHED},
        )
        for row in rows
    )


_MATCHED = ("source", "dest", "proto", "dport", "sport", "iface", "macro")


def _planned_rules(values: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules of a resource, in their order."""
    listed = values.get("rule")
    return tuple(
        Rule(
            action="" if rule.get("security_group") else _text(rule.get("action")),
            group=_text(rule.get("security_group")).lower(),
            direction=_text(rule.get("type")) or "in",
            is_enabled=rule.get("enabled") is not False,
            **{name: _text(rule.get(name)) for name in _MATCHED},
        )
        for rule in (listed if isinstance(listed, list) else ())
        if isinstance(rule, dict)
    )


def _apply(firewall: Firewall, changes: Iterable[Change]) -> Firewall:
    """Return the firewall of the cluster as a plan leaves it."""
    for change in changes:
        kind, before, after = short_kind(change), change.before or {}, change.after
        if kind == "cluster_firewall":
            values = after or {}
            firewall = replace(
                firewall,
                is_enabled=values.get("enabled") is True,
                policy=_text(values.get("input_policy")) or firewall.policy,
            )
        elif kind == "firewall_rules" and not node_of(change):
            firewall = replace(firewall, rules=_exchange_rules(firewall.rules, before, after))
        elif kind == "cluster_firewall_security_group":
            rules = None if after is None else _planned_rules(after)
            firewall = replace(firewall, groups=_exchange(firewall.groups, before, after, rules))
        elif kind == "firewall_ipset" and not node_of(change):
            entries = None if after is None else tuple(_planned_entries(after))
            firewall = replace(firewall, sets=_exchange(firewall.sets, before, after, entries))
        elif kind == "firewall_alias" and not node_of(change):
            cidr = None if after is None else _text(after.get("cidr"))
            firewall = replace(firewall, aliases=_exchange(firewall.aliases, before, after, cidr))
    return firewall


def _apply_to_node(own: NodeFirewall, node: str, changes: Iterable[Change]) -> NodeFirewall:
    for change in changes:
        if node_of(change) != node:
            continue
        after = change.after or {}
        if short_kind(change) == "node_firewall":
            own = replace(own, is_enabled=after.get("enabled") is not False)
        elif short_kind(change) == "firewall_rules":
            own = replace(own, rules=_exchange_rules(own.rules, change.before, after))
    return own


def _exchange_rules(
    known: tuple[Rule, ...] | None, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> tuple[Rule, ...] | None:
    """Return the rules as a plan leaves them: its own first, then those that somebody else made."""
    if known is None:
        return None
    own = _planned_rules(before or {})
    return (*_planned_rules(after or {}), *(rule for rule in known if rule not in own))


def _exchange(
    known: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any] | None, value: Any
) -> dict[str, Any]:
    """Return groups, sets or aliases with one of them changed, renamed or gone."""
    kept = {name: one for name, one in known.items() if name != _text(before.get("name")).lower()}
    return kept if after is None else {**kept, _text(after.get("name")).lower(): value}


def _planned_entries(values: Mapping[str, Any]) -> Iterator[str]:
    listed = values.get("cidr")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict):
            yield f"{'!' if entry.get('nomatch') is True else ''}{entry.get('name')}"


def _flag(value: Any) -> bool:
    return str(value) not in ("0", "False", "")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
