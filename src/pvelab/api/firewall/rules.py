"""Rules of the cluster, of nodes, guests, virtual networks and security groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.checks import RuleCheck
from pvelab.api.firewall.config import (
    CLUSTER,
    Entry,
    FirewallConfig,
    edit_config,
    load,
    read_config,
    scope_of,
    with_digest,
)
from pvelab.api.firewall.paths import everywhere
from pvelab.api.firewall.sdn_sets import all_sets, visible_sets
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.sections import check_digest

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["create_rule", "delete_rule", "list_rules", "read_rule", "update_rule"]

_PROPERTIES = frozenset(
    (
        *("type", "action", "macro", "iface", "source", "dest", "proto", "sport", "dport"),
        *("enable", "log", "comment", "icmp-type", "pos", "digest"),
    )
)


@route(*everywhere("GET rules"), "GET /cluster/firewall/groups/{group}")
def list_rules(call: Call) -> Any:
    """List the rules in the order in which they apply."""
    return [{**rule, "pos": position} for position, rule in enumerate(_format_rules(call))]


@route(*everywhere("GET rules/{pos}"), "GET /cluster/firewall/groups/{group}/{pos}")
def read_rule(call: Call) -> Any:
    """Answer one rule; its position is text here, as it came in the path."""
    return {**_at(_format_rules(call), call), "pos": str(call.params["pos"])}


@route(*everywhere("POST rules"), "POST /cluster/firewall/groups/{group}")
def create_rule(call: Call) -> None:
    """Put a rule before all others, switched off unless told otherwise."""
    with edit_config(call) as config:
        rule = _check(call, config, visible_sets(call)).verify(_change_rule({"enable": 0}, call))
        _rules(call, config).insert(0, rule)


@route(*everywhere("PUT rules/{pos}"), "PUT /cluster/firewall/groups/{group}/{pos}")
def update_rule(call: Call) -> None:
    """Move a rule, or else change its properties."""
    with edit_config(call) as config:
        rules = _rules(call, config)
        _check_unchanged(call, rules)
        rule, position = _at(rules, call), int(call.params["pos"])
        target = call.params.get("moveto")
        if target is not None and target != position:
            rules.insert(target, rule)
            del rules[position + (target < position)]
            return
        rules[position] = _check(call, config, visible_sets(call)).verify(
            _without(_change_rule(rule, call), call)
        )


@route(*everywhere("DELETE rules/{pos}"), "DELETE /cluster/firewall/groups/{group}/{pos}")
def delete_rule(call: Call) -> None:
    """Remove a rule; those behind it move up."""
    with edit_config(call) as config:
        rules = _rules(call, config)
        _check_unchanged(call, rules)
        _at(rules, call)
        del rules[call.params["pos"]]


def _rules(call: Call, config: FirewallConfig) -> list[Entry]:
    group = call.params.get("group")
    return config.rules if group is None else config.require_group(group)


def _check(call: Call, config: FirewallConfig, sets: FirewallConfig) -> RuleCheck:
    scope = scope_of(call)
    if scope is CLUSTER:
        environment = "group" if "group" in call.params else scope.environment
        return RuleCheck(environment=environment, configs=(config, sets))
    cluster = load(call.store, CLUSTER.key)
    return RuleCheck(environment=scope.environment, configs=(config, cluster, sets))


def _format_rules(call: Call) -> list[Entry]:
    """Return the rules with their digest, and with what is wrong with those that refer to nothing."""
    config = read_config(call)
    check = _check(call, config, all_sets(call))
    rules, _ = with_digest(_rules(call, config))
    for rule in rules:
        problems = check.problems(rule)
        if problems:
            rule["errors"] = dict(problems)
    return rules


def _check_unchanged(call: Call, rules: list[Entry]) -> None:
    check_digest(with_digest(rules)[1], call.params.get("digest"))


def _at(rules: list[Entry], call: Call) -> Entry:
    position = int(call.params["pos"])
    if position >= len(rules):
        raise PveError(f"no rule at position {position}")
    return rules[position]


def _change_rule(rule: Entry, call: Call) -> Entry:
    """Return a rule with the properties of a call; an empty text or a dash unsets one."""
    given = {key: value for key, value in call.params.items() if key in _PROPERTIES - {"pos", "digest"}}
    merged = {**rule, **given}
    return {key: value for key, value in merged.items() if value not in ("", "-")}


def _without(rule: Entry, call: Call) -> Entry:
    names = split_list(call.params.get("delete", ""))
    for name in names:
        if name not in _PROPERTIES:
            raise bad_parameter("delete", f"no such property ('{name}')")
        if name in ("type", "action"):
            raise bad_parameter("delete", f"unable to delete required property '{name}'")
    return {key: value for key, value in rule.items() if key not in names}
