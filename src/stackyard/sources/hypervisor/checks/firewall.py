"""Firewall rules: complete, with names that exist, and in an order in which each can match."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.hypervisor.checks.addresses import BAD_ADDRESS, is_network
from stackyard.sources.hypervisor.checks.references import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, Key, SiteFacts

__all__ = ["check_firewall"]

BAD_RULE = Kind(
    code="E-HYPERVISOR-RULE",
    summary="A firewall rule is not complete",
    remedy="Write `type` and `action`, or `security_group` alone; ports need a `proto` or a `macro`.",
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

_CONDITIONS = ("iface", "source", "dest", "proto", "macro", "sport", "dport")
_ALIAS = re.compile(r"(?:(?:dc|guest)/)?(?P<name>[A-Za-z][A-Za-z0-9_-]+)")
_IPSET = re.compile(r"\+(?:(?:dc|guest)/)?(?P<name>[A-Za-z][A-Za-z0-9_-]+)")
_TYPES = ("in", "out", "forward")


def check_firewall(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the rules and sets of clusters and nodes."""
    del site
    for file in files:
        for entry in file.section("firewall.groups", "firewall.rules"):
            for index in range(len(entry.values.get("rules") or ())):
                _check_rule(files, file, entry, index, found)
                _check_order(file, entry, index, found)
        for entry in file.section("firewall.ipsets"):
            for index, one in enumerate(entry.values.get("entries") or ()):
                _check_target(files, file, entry, ("entries", index, "name"), one["name"], found)


def _check_rule(
    files: Sequence[HypervisorFile], file: HypervisorFile, entry: Entry, index: int, found: Diagnostics
) -> None:
    rule: Mapping[str, Any] = entry.values["rules"][index]
    where = file.place(entry, "rules", index)
    group = rule.get("security_group")
    if group is not None:
        others = [key for key in ("type", "action", *_CONDITIONS[1:]) if rule.get(key) is not None]
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
    for key in ("source", "dest"):
        for word in (rule.get(key) or "").split(","):
            if word.strip():
                _check_target(files, file, entry, ("rules", index, key), word.strip(), found)


def _check_target(
    files: Sequence[HypervisorFile],
    file: HypervisorFile,
    entry: Entry,
    keys: tuple[Key, ...],
    word: str,
    found: Diagnostics,
) -> None:
    """Check an address, a network, a range, an alias or an ipset."""
    first, dash, last = word.partition("-")
    if is_network(word) or (dash and is_network(first) and is_network(last)):
        return
    alias, ipset = _ALIAS.fullmatch(word), _IPSET.fullmatch(word)
    if alias is not None:
        check_name(files, "firewall.aliases", alias["name"], "alias").add(file, entry, keys, found)
    elif ipset is not None:
        check_name(files, "firewall.ipsets", ipset["name"], "ipset").add(file, entry, keys, found)
    else:
        detail = f"'{word}' is no address, network, range, alias or +ipset."
        found.add(BAD_ADDRESS, detail, file.place(entry, *keys))


def _check_order(file: HypervisorFile, entry: Entry, index: int, found: Diagnostics) -> None:
    """Check that no earlier rule takes all the traffic of a rule."""
    rules = entry.values["rules"]
    rule = rules[index]
    if not _decides(rule):
        return
    for number, first in enumerate(rules[:index]):
        if _decides(first) and first["type"] == rule["type"] and _takes(first, rule):
            where = file.place(entry, "rules", index)
            also = file.place(entry, "rules", number)
            kind = REPEATED if first["action"].upper() == rule["action"].upper() else NEVER_MATCHES
            detail = f"The rule of line {also.line} takes all traffic that this one is for: {_words(first)}."
            found.add(kind, detail, where, also=(also,))
            return


def _decides(rule: Mapping[str, Any]) -> bool:
    return (
        rule.get("type") is not None and rule.get("action") is not None and rule.get("enabled") is not False
    )


def _takes(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether whatever matches the second rule matches the first: it has no condition of its own."""
    return all(first.get(key) in (None, second.get(key)) for key in _CONDITIONS)


def _words(rule: Mapping[str, Any]) -> str:
    said = [f"{key} {rule[key]}" for key in _CONDITIONS if rule.get(key) is not None]
    return " ".join((rule["type"], rule["action"], *(said or ("everything",))))
