"""Firewall rules: complete, with names that exist, and in an order in which each can match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired.firewall_words import (
    check_action,
    check_addresses,
    check_macro,
    check_ports,
    check_protocol,
    check_set_entry,
    name_in,
)
from stackyard.sources.hypervisor.checks.addresses import BAD_ADDRESS
from stackyard.sources.hypervisor.checks.references import check_name
from stackyard.sources.hypervisor.checks.rule_order import PlacedRule, decides, find_taken
from stackyard.sources.hypervisor.checks.rule_traffic import CONDITIONS, NamedAddresses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, Key, SiteFacts

__all__ = ["NEVER_MATCHES", "REPEATED", "check_firewall", "list_in_group"]

BAD_RULE = Kind(
    code="E-HYPERVISOR-RULE",
    summary="A firewall rule is not complete, or Proxmox does not know what it says",
    remedy="Write `type` and `action`, or `security_group` alone; ports need a `proto` or a `macro`. Use the "
    "actions, macros and protocols of Proxmox.",
)
NEVER_MATCHES = Kind(
    code="E-HYPERVISOR-RULE-ORDER",
    summary="A firewall rule never takes effect",
    remedy="Move it above the rule that takes its traffic: the first rule that matches decides.",
)
REPEATED = Kind(
    code="W-HYPERVISOR-RULE-REPEATED",
    summary="A firewall rule has no effect",
    remedy="Remove it: an earlier rule does the same with the same traffic.",
    severity=Severity.WARNING,
)

_WORDS: Mapping[str, Callable[[str], str]] = {
    "action": check_action,
    "macro": check_macro,
    "proto": check_protocol,
    "sport": check_ports,
    "dport": check_ports,
    "source": check_addresses,
    "dest": check_addresses,
}
_TYPES = ("in", "out", "forward")


def check_firewall(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the rules and sets of clusters and nodes."""
    del site
    for file in files:
        for entry in file.section("firewall.groups", "firewall.rules"):
            for index in range(len(entry.values.get("rules") or ())):
                _check_rule(files, file, entry, index, found)
                _check_order(files, file, entry, index, found)
        for entry in file.section("firewall.ipsets"):
            for index in range(len(entry.values.get("entries") or ())):
                keys = ("entries", index, "name")
                _check_word(file, entry, keys, check_set_entry, found)
                _check_reference(files, file, entry, keys, found)


def _check_rule(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, index: int, found: Diagnostics
) -> None:
    rule: Mapping[str, Any] = entry.values["rules"][index]
    where = file.place(entry, "rules", index)
    group = rule.get("security_group")
    if group is not None:
        others = [key for key in ("type", "action", *CONDITIONS[1:]) if rule.get(key) is not None]
        if others:
            detail = f"The rule has `security_group` and {', '.join(f'`{key}`' for key in others)}."
            found.add(BAD_RULE, detail, where)
        looked_up = check_name(files, "firewall.groups", group, "security group")
        looked_up.add(file, entry, ("rules", index, "security_group"), found)
    elif missing := [key for key in ("type", "action") if rule.get(key) is None]:
        found.add(BAD_RULE, f"The rule has no {' and no '.join(f'`{key}`' for key in missing)}.", where)
    elif rule["type"] not in _TYPES:
        detail = f"`type` is in, out or forward, and not '{rule['type']}'."
        found.add(BAD_RULE, detail, file.place(entry, "rules", index, "type"))
    ports = [key for key in ("sport", "dport") if rule.get(key) is not None]
    if ports and rule.get("proto") is None and rule.get("macro") is None and group is None:
        found.add(BAD_RULE, f"The rule has `{ports[0]}` and no `proto`.", where)
    for key, check in _WORDS.items():
        if rule.get(key) is not None:
            _check_word(file, entry, ("rules", index, key), check, found)
    for key in ("source", "dest"):
        _check_reference(files, file, entry, ("rules", index, key), found)


def _check_word(
    file: HypervisorFile,
    entry: Entry,
    keys: tuple[Key, ...],
    check: Callable[[str], str],
    found: Diagnostics,
) -> None:
    """Check what Proxmox reads of a rule or a set, with the words that guests use, too."""
    *_, name = keys
    try:
        check(str(_value_at(entry, keys)))
    except ValueError as err:
        kind = BAD_ADDRESS if name in ("source", "dest", "name") else BAD_RULE
        found.add(kind, f"`{name}`: {err}.", file.place(entry, *keys))


def _check_reference(
    files: Sequence[HypervisorFile],
    file: HypervisorFile,
    entry: Entry,
    keys: tuple[Key, ...],
    found: Diagnostics,
) -> None:
    """Check the alias or ipset that an address stands for."""
    named = name_in(str(_value_at(entry, keys) or ""))
    if named is not None and named.scope != "sdn":
        section, what = ("firewall.ipsets", "ipset") if named.is_set else ("firewall.aliases", "alias")
        check_name(files, section, named.name, what).add(file, entry, keys, found)


def _value_at(entry: Entry, keys: tuple[Key, ...]) -> Any:
    value: Any = entry.values
    for key in keys:
        value = value.get(key) if isinstance(key, str) else value[key]
    return value


def _check_order(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, index: int, found: Diagnostics
) -> None:
    """Check that no earlier rule takes all the traffic of a rule, or of a group of rules."""
    mine = _list_deciding(files, file, entry, index)
    earlier = [one for number in range(index) for one in _list_deciding(files, file, entry, number)]
    taken = find_taken(mine, earlier, NamedAddresses.of(files))
    if taken is None:
        return
    where = file.place(entry, "rules", index)
    detail = taken.describe(where, is_group=bool(entry.values["rules"][index].get("security_group")))
    kind = NEVER_MATCHES if taken.is_decided_otherwise else REPEATED
    found.add(kind, detail, where, also=(taken.first.where,))


def _list_deciding(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, index: int
) -> list[PlacedRule]:
    """Return what decides at a place in a list: a rule, or those of the group that is included there."""
    rule = entry.values["rules"][index]
    if file.has_lost(entry, "rules", index):
        # What is left of it is for more than what was meant.
        return []
    if rule.get("security_group") is None:
        return [PlacedRule(rule=rule, where=file.place(entry, "rules", index))] if decides(rule) else []
    return list_in_group(files, rule)


def list_in_group(files: Sequence[HypervisorFile], rule: Mapping[str, Any]) -> list[PlacedRule]:
    """Return what decides in the group that a rule includes; nothing where two files have one of its name."""
    group = rule["security_group"]
    named = [(one, each) for one in files for each in one.section("firewall.groups") if each.name == group]
    if rule.get("enabled") is False or len(named) != 1:
        return []
    ((its, group_entry),) = named
    found = []
    for number, inner in enumerate(group_entry.values.get("rules") or ()):
        if decides(inner) and not its.has_lost(group_entry, "rules", number):
            whole = {**inner, "iface": rule["iface"]} if rule.get("iface") is not None else inner
            found.append(PlacedRule(rule=whole, where=its.place(group_entry, "rules", number)))
    return found
