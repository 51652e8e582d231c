"""Affinity rules: which resources belong on which nodes, together, or apart.

A set of rules is checked as a whole: each rule that cannot be kept beside the others gets its errors and has
no effect. What is left is completed with what follows from it, and compiled into `Affinity`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Affinity", "Errors", "Rule", "check_rules", "compile_rules", "parse_nodes", "print_nodes"]

NODE, RESOURCE = "node-affinity", "resource-affinity"
OTHERS = -1

# By rule, by option: what is wrong.
Errors = dict[str, dict[str, list[str]]]

_NODE = re.compile(r"([a-zA-Z0-9](?:[a-zA-Z0-9\-]*[a-zA-Z0-9])?)(?::(\d{1,18}))?")


@dataclass(slots=True, kw_only=True)
class Rule:
    """One rule.

    Attributes:
        type: `node-affinity` or `resource-affinity`.
        resources: The names of its resources.
        nodes: The priority of each node, of those with nodes.
        strict: Whether no other nodes will do.
        positive: Whether its resources belong together rather than apart.
    """

    type: str
    resources: set[str]
    nodes: dict[str, int] = field(default_factory=dict)
    strict: bool = False
    positive: bool = True

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Rule:
        """Return a rule as it is kept in a document."""
        return cls(
            type=str(document["type"]),
            resources=set(split_list(str(document.get("resources", "")))),
            nodes=parse_nodes(str(document.get("nodes", ""))),
            strict=bool(document.get("strict")),
            positive=document.get("affinity") == "positive",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """Compiled rules.

    Attributes:
        nodes: By resource, the priority of each node that it may be on; absent, it may be on any.
        together: By resource, those that it belongs with.
        apart: By resource, those that it must keep away from.
    """

    nodes: Mapping[str, Mapping[str, int]]
    together: Mapping[str, Collection[str]]
    apart: Mapping[str, Collection[str]]


def parse_nodes(text: str) -> dict[str, int]:
    """Read `pve1:2,pve2`."""
    found = (_NODE.fullmatch(one) for one in split_list(text))
    return {match[1]: int(match[2] or 0) for match in found if match}


def print_nodes(nodes: Mapping[str, int]) -> str:
    """Print nodes in order, with their priorities."""
    return ",".join(f"{node}:{nodes[node]}" if nodes[node] else node for node in sorted(nodes))


def check_rules(rules: Mapping[str, Rule], nodes: Collection[str]) -> Errors:
    """Return what is wrong with each rule that is in force, beside the others."""
    errors: Errors = defaultdict(lambda: defaultdict(list))

    def add_error(rule: str, text: str) -> None:
        errors[rule]["resources"].append(text)

    node_rules = {ident: rule for ident, rule in rules.items() if rule.type == NODE}
    positive = {ident: rule for ident, rule in rules.items() if rule.type == RESOURCE and rule.positive}
    negative = {ident: rule for ident, rule in rules.items() if rule.type == RESOURCE and not rule.positive}
    for ident, text in (
        *_find_duplicates(node_rules),
        *_counts({**positive, **negative}, negative, nodes),
        *_contradictions(positive, negative),
        *_priorities({**positive, **negative}, node_rules),
        *_find_split_affinity(positive, node_rules),
        *_find_full_anti_affinity(negative, node_rules),
    ):
        add_error(ident, text)
    return {ident: dict(found) for ident, found in errors.items()}


def _find_duplicates(rules: Mapping[str, Rule]) -> Iterable[tuple[str, str]]:
    users: dict[str, list[str]] = defaultdict(list)
    for ident, rule in rules.items():
        for sid in rule.resources:
            users[sid].append(ident)
    found = sorted((ident, sid) for sid, idents in users.items() if len(idents) > 1 for ident in idents)
    return [
        (ident, f"resource '{sid}' is already used in another node affinity rule") for ident, sid in found
    ]


def _counts(
    rules: Mapping[str, Rule], negative: Mapping[str, Rule], nodes: Collection[str]
) -> Iterable[tuple[str, str]]:
    for ident in sorted(rules):
        if len(rules[ident].resources) < 2:
            yield ident, "rule is ineffective as there are less than two resources"
    for ident in sorted(negative):
        if len(negative[ident].resources) > len(nodes):
            yield ident, "rule defines more resources than available nodes"


def _contradictions(positive: Mapping[str, Rule], negative: Mapping[str, Rule]) -> Iterable[tuple[str, str]]:
    for idents, resources in _join_rules(positive):
        for other, rule in negative.items():
            if len(resources & rule.resources) < 2:
                continue
            yield other, "rule shares two or more resources with a positive resource affinity rule"
            for ident in idents:
                yield ident, "rule shares two or more resources with a negative resource affinity rule"


def _priorities(rules: Mapping[str, Rule], node_rules: Mapping[str, Rule]) -> Iterable[tuple[str, str]]:
    for ident, rule in rules.items():
        touched = [other for other, found in node_rules.items() if rule.resources & found.resources]
        if not any(len(set(node_rules[other].nodes.values())) > 1 for other in touched):
            continue
        yield ident, "resources are in node affinity rules with multiple priorities"
        for other in sorted(touched):
            yield (
                other,
                "resources are in a resource affinity rule and cannot be in a node affinity rule with"
                " multiple priorities",
            )


def _find_split_affinity(
    positive: Mapping[str, Rule], node_rules: Mapping[str, Rule]
) -> Iterable[tuple[str, str]]:
    for idents, resources in _join_rules(positive):
        touched = [other for other, rule in node_rules.items() if resources & rule.resources]
        if len(touched) < 2:
            continue
        for ident in idents:
            yield ident, "resources are in multiple node affinity rules"
        for other in sorted(touched):
            yield (
                other,
                "at least one resource is in a positive resource affinity rule and there are other"
                " resources in at least one other node affinity rule already",
            )


def _find_full_anti_affinity(
    negative: Mapping[str, Rule], node_rules: Mapping[str, Rule]
) -> Iterable[tuple[str, str]]:
    for ident, rule in negative.items():
        touched = [other for other, found in node_rules.items() if rule.resources & found.resources]
        placed = {sid for other in touched for sid in rule.resources & node_rules[other].resources}
        allowed = {node for other in touched for node in node_rules[other].nodes}
        if len(allowed) >= len(placed):
            continue
        yield ident, "two or more resources are restricted to less nodes than available to the resources"
        for other in sorted(touched):
            yield (
                other,
                "at least one resource is in a negative resource affinity rule and this rule would restrict"
                " these to less nodes than available to the resources",
            )


def compile_rules(rules: Mapping[str, Rule], nodes: Collection[str]) -> Affinity:
    """Return what the rules that can be kept ask for."""
    broken = check_rules(rules, nodes)
    kept = [rule for ident, rule in sorted(rules.items()) if ident not in broken]
    together = [
        found for _, found in _join_rules({str(n): r for n, r in enumerate(kept) if _binds(r, positive=True)})
    ]
    apart = [set(rule.resources) for rule in kept if _binds(rule, positive=False)]
    # Anyone who belongs with someone keeps away from whom he keeps away from.
    for group in together:
        for found in list(apart):
            apart += [{sid, other} for other in found - group for sid in group - found if found & group]
    places: dict[str, dict[str, int]] = {}
    for rule in (one for one in kept if one.type == NODE):
        others = {} if rule.strict else dict.fromkeys(nodes, OTHERS)
        resources = set(rule.resources).union(*(group for group in together if group & rule.resources))
        places |= {sid: {**others, **rule.nodes} for sid in sorted(resources)}
    return Affinity(nodes=places, together=_pairs(together), apart=_pairs(apart))


def _binds(rule: Rule, *, positive: bool) -> bool:
    return rule.type == RESOURCE and rule.positive is positive


def _pairs(groups: Iterable[set[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for sid in group:
            found[sid] |= group - {sid}
    return dict(found)


def _join_rules(rules: Mapping[str, Rule]) -> list[tuple[list[str], set[str]]]:
    """Return rules that share resources as one: their names and all their resources."""
    groups: list[tuple[list[str], set[str]]] = []
    for ident in sorted(rules, key=lambda one: (min(rules[one].resources, default=""), one)):
        resources = set(rules[ident].resources)
        found = next((group for group in groups if group[1] & resources), None)
        if found is None:
            groups.append(([ident], resources))
        else:
            found[0].append(ident)
            found[1].update(resources)
    return groups
