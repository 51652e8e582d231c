"""Which rules still name a security group, an IP set or an alias of the cluster that a plan takes away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.proxmox import quote
from stackyard.engine.changes import Action
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding
from stackyard.guard.hypervisor.dependants import STILL_USED, describe_guest, join_users
from stackyard.guard.subjects import node_of, owner_of, short_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from stackyard.engine.changes import Change
    from stackyard.guard.cluster import Cluster, ClusterGuest
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["ask_firewall_uses", "find_firewall_uses", "follow_firewall_uses"]

_GROUP, _SET, _ALIAS, _RULES = (
    *("cluster_firewall_security_group", "firewall_ipset"),
    *("firewall_alias", "firewall_rules"),
)
_WORDS = {_GROUP: "security group", _SET: "IP set", _ALIAS: "alias"}
_BASE = "/cluster/firewall"
_ENTRIES = {_GROUP: "groups", _SET: "ipset"}
# Where a guest has names of its own, that come before those of the cluster.
_OWN = {_SET: "ipset", _ALIAS: "aliases"}
_Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """A name that is no longer there once a plan is applied."""

    kind: str
    name: str
    change: Change

    def __str__(self) -> str:
        how = "removed" if self.change.destroys else "renamed"
        return f"The {_WORDS[self.kind]} {self.name} would be {how}"

    def is_in(self, row: Mapping[str, Any]) -> bool:
        """Return whether a rule, as Proxmox or a plan has it, or an entry of a set names it."""
        if self.kind == _GROUP:
            said = row.get("security_group") or (row.get("action") if row.get("type") == "group" else "")
            return str(said or "").lower() == self.name
        sign = "+" if self.kind == _SET else ""
        names = {f"{sign}{self.name}", f"{sign}dc/{self.name}"}
        texts = (row.get(key) for key in ("source", "dest", "cidr", "name"))
        return any(part.strip().lower() in names for text in texts for part in str(text or "").split(","))

    def is_shared_in(self, row: Mapping[str, Any]) -> bool:
        """Return whether a rule means the one of the cluster, whatever the guest has itself."""
        return self.is_in({key: text for key, text in row.items() if "dc/" in str(text)})


def _list_gone(implied: ImpliedCalls) -> Iterator[_Gone]:
    for change in implied.changes.planned:
        kind, before = short_kind(change), change.before
        is_shared = kind in _WORDS and owner_of(change) is None and node_of(change) is None
        if before is None or not is_shared or change.action is Action.FORGET:
            continue
        name = str(before.get("name")).lower()
        if name != str((change.after or {}).get("name")).lower():
            yield _Gone(kind=kind, name=name, change=change)


def _guest_list(guest: ClusterGuest, part: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(guest.node)}/{guest.kind}/{guest.vm_id}/firewall/{part}")


def _node_rules(node: str) -> ApiRead:
    return ApiRead(f"/nodes/{quote(node)}/firewall/rules")


def _below(kind: str, name: str = "") -> ApiRead:
    return ApiRead(f"{_BASE}/{_ENTRIES[kind]}" + (f"/{quote(name)}" if name else ""))


def ask_firewall_uses(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Read all rules, where a plan takes away what they may name."""
    gone = list(_list_gone(implied))
    if not gone:
        return
    yield from (ApiRead(f"{_BASE}/rules"), _below(_GROUP), _below(_SET))
    online = {node.name for node in cluster.nodes if node.is_online}
    yield from map(_node_rules, sorted(online))
    for guest in cluster.guests:
        if guest.node in online and guest.vm_id not in implied.destroyed:
            yield _guest_list(guest, "rules")
            yield from (_guest_list(guest, _OWN[kind]) for kind in {one.kind for one in gone} & _OWN.keys())


def follow_firewall_uses(implied: ImpliedCalls, facts: Facts) -> Iterator[ApiRead]:
    """Read what is in the groups and sets."""
    if any(_list_gone(implied)):
        yield from (_below(_GROUP, str(row.get("group"))) for row in facts.rows(_below(_GROUP)))
        yield from (_below(_SET, str(row.get("name"))) for row in facts.rows(_below(_SET)))


def find_firewall_uses(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report each name that rules still have, with the places of those rules."""
    for gone in _list_gone(implied):
        shared = [where for where, rows in _list_shared(implied, facts) if any(map(gone.is_in, rows))]
        guests = [
            describe_guest(guest, facts)
            for guest in facts.cluster.guests
            if guest.vm_id not in implied.destroyed and _uses(gone, guest, facts)
        ]
        users = [*guests, *shared]
        if users:
            address = gone.change.address
            detail = f"{gone}, and is used by: {join_users(users)}."
            yield Finding(kind=STILL_USED, detail=detail, address=address, label=address)


def _uses(gone: _Gone, guest: ClusterGuest, facts: Facts) -> bool:
    own: Iterable[Mapping[str, Any]] = ()
    if gone.kind in _OWN:
        own = facts.rows(_guest_list(guest, _OWN[gone.kind]))
    is_own = any(str(row.get("name")).lower() == gone.name for row in own)
    is_meant = gone.is_shared_in if is_own else gone.is_in
    return any(map(is_meant, facts.rows(_guest_list(guest, "rules"))))


def _list_shared(implied: ImpliedCalls, facts: Facts) -> Iterator[tuple[str, _Rows]]:
    """Return the rules and entries of the cluster and its nodes, as a plan leaves them."""
    rules = {node_of(one) or "": one for one in _list_changes(implied, _RULES)}
    yield "the rules of the cluster", _after(rules.get(""), "rule", facts.rows(ApiRead(f"{_BASE}/rules")))
    for node in facts.cluster.nodes:
        rows = _after(rules.get(node.name), "rule", facts.rows(_node_rules(node.name)))
        yield f"the rules of the node {node.name}", rows
    for kind, key, attribute in ((_GROUP, "group", "rule"), (_SET, "name", "cidr")):
        changes = {str((one.before or {}).get("name")): one for one in _list_changes(implied, kind)}
        for row in facts.rows(_below(kind)):
            name = str(row.get(key))
            rows = _after(changes.get(name), attribute, facts.rows(_below(kind, name)))
            yield f"the {_WORDS[kind]} {name}", rows


def _list_changes(implied: ImpliedCalls, kind: str) -> Iterator[Change]:
    for change in implied.changes.planned:
        if short_kind(change) == kind and owner_of(change) is None:
            yield change


def _after(change: Change | None, attribute: str, there: Iterable[Mapping[str, Any]]) -> _Rows:
    """Return rules or entries as a plan leaves them; those that are there where it does nothing to them."""
    if change is None:
        return [dict(row) for row in there]
    listed = (change.after or {}).get(attribute)
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
