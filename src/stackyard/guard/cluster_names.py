"""What nodes use of their cluster by name: accounts and plugins of ACME, groups, IP sets and aliases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import ClusterObject
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["ACCOUNT", "ALIAS", "GROUP", "IP_SET", "PLUGIN", "ask_cluster_names", "find_cluster_names"]

NO_OBJECT = Kind(
    code="E-GUARD-NO-SUCH-OBJECT",
    summary="A cluster does not have what a node or a rule uses",
    remedy="Correct the name, or declare the object in the file of the cluster.",
)
ACCOUNT, PLUGIN = "acme_account", "acme_dns_plugin"
GROUP, IP_SET, ALIAS = "cluster_firewall_security_group", "firewall_ipset", "firewall_alias"
# What each kind is called, the list of those that are there, and the key of their names in it.
_LISTS: Mapping[str, tuple[str, str, str]] = {
    ACCOUNT: ("ACME account", "/cluster/acme/account", "name"),
    PLUGIN: ("ACME plugin", "/cluster/acme/plugins", "plugin"),
    GROUP: ("security group", "/cluster/firewall/groups", "group"),
    IP_SET: ("IP set", "/cluster/firewall/ipset", "name"),
    ALIAS: ("alias", "/cluster/firewall/aliases", "name"),
}
# Proxmox has these without anybody's doing.
_BUILT_IN = frozenset({(PLUGIN, "standalone"), (IP_SET, "management"), (ALIAS, "local_network")})
_NAME = re.compile(r"(?:dc/)?([A-Za-z][A-Za-z0-9_-]+)")


def _list_used(one: ClusterObject) -> Iterator[tuple[str, str]]:
    """Return the kind and name of everything that an object uses."""
    kind, values = short_type(one.key.type), one.attributes
    if kind == "acme_certificate":
        yield ACCOUNT, str(values.get("account") or "default")
        for domain in values.get("domains") or ():
            if domain.get("plugin"):
                yield PLUGIN, domain["plugin"]
    if kind in ("firewall_rules", GROUP):
        for rule in values.get("rule") or ():
            yield from _list_used_by_rule(rule)


def _list_used_by_rule(rule: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if rule.get("security_group"):
        yield GROUP, rule["security_group"]
    for end in ("source", "dest"):
        for part in str(rule.get(end) or "").split(","):
            found = _NAME.fullmatch(part.strip().removeprefix("+"))
            if found is not None:
                yield (IP_SET if part.strip().startswith("+") else ALIAS), found[1]


def _list_foreign(implied: ImpliedCalls) -> Iterator[tuple[ClusterObject, str, str]]:
    """Return what objects use that the target does not declare itself."""
    own = {(short_type(one.key.type), one.key.name) for one in implied.desired.objects}
    for one in implied.desired.objects:
        for kind, name in dict.fromkeys(_list_used(one)):
            if (kind, name) not in own and (kind, name) not in _BUILT_IN:
                yield one, kind, name


def ask_cluster_names(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for what the cluster has of the kinds that are used."""
    del cluster
    for _, kind, _ in _list_foreign(implied):
        yield ApiRead(_LISTS[kind][1])


def find_cluster_names(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report names that the cluster does not have."""
    for one, kind, name in _list_foreign(implied):
        said, path, key = _LISTS[kind]
        rows = facts.answers.get(ApiRead(path))
        if not isinstance(rows, list):
            continue
        names = sorted(str(row.get(key)) for row in rows)
        if name not in names:
            node = str(one.attributes.get("node_name") or "")
            why = implied.declared.explain(kind, name, node, names)
            known = ", ".join(names) or "none"
            where = address_of_object(one.key)
            detail = f"{where} uses the {said} {name}; the cluster has {known}.{why}"
            yield Finding(kind=NO_OBJECT, detail=detail, label=where)
