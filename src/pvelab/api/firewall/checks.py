"""Whether a rule can be: the properties of a rule against each other, its scope, and what it refers to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.firewall.macros import check_macro, macro_name
from pvelab.server.params.firewall_formats import (
    ALIAS,
    ICMP_TYPES,
    ICMPV6_TYPES,
    parse_addresses,
    parse_ports,
)
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError, bad_parameter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.api.firewall.config import FirewallConfig

__all__ = ["RuleCheck"]

_TYPES: Mapping[str, tuple[str, ...]] = {
    "ct": ("in", "out", "group"),
    "vm": ("in", "out", "group"),
    "group": ("in", "out", "forward"),
    "cluster": ("in", "out", "forward", "group"),
    "host": ("in", "out", "forward", "group"),
    "vnet": ("forward", "group"),
}
_WITHOUT_INTERFACE = ("group", "vnet")
_ACTIONS = ("ACCEPT", "DROP", "REJECT")
_NAME = r"[A-Za-z][A-Za-z0-9\-_]+"
_IPSET = re.compile(rf"\+(?:guest/|dc/|sdn/)?({_NAME})")
_ICMP = {"icmp": 4, "icmpv6": 6, "ipv6-icmp": 6}
_WITH_PORTS = frozenset(
    ("udp", "17", "udplite", "136", "tcp", "6", "dccp", "33", "sctp", "132"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCheck:
    """Checks the rules of one scope.

    Attributes:
        environment: What the scope is.
        configs: Where aliases and IP sets may be defined, the nearest first.
    """

    environment: str
    configs: tuple[FirewallConfig, ...]

    def verify(self, rule: Mapping[str, Any]) -> dict[str, Any]:
        """Return a rule with its macro spelt right and the IP version that its addresses have.

        Raises:
            PveError: 400, naming the property that is wrong.
        """
        checked = dict(rule)
        checked.pop("ipversion", None)
        self._check_type(checked)
        self._check_interface(checked)
        if checked.get("macro"):
            name = macro_name(checked["macro"])
            if name is None:
                raise bad_parameter("macro", f"unknown macro '{checked['macro']}'")
            checked["macro"] = name
        _check_ports(checked)
        _check_icmp_type(checked)
        version = self._version(checked)
        if version is not None:
            checked["ipversion"] = version
        if checked.get("macro"):
            check_macro(checked, version)
        return checked

    def problems(self, rule: Mapping[str, Any]) -> Mapping[str, str]:
        """Return what is wrong with a rule that is already there, such as an alias that is gone."""
        try:
            self.verify(rule)
        except PveError as err:
            return err.errors or {}
        return {}

    def _check_type(self, rule: Mapping[str, Any]) -> None:
        kind, action = rule.get("type"), rule.get("action")
        for name, value in (("type", kind), ("action", action)):
            if not value:
                raise bad_parameter(name, "missing property")
        if kind not in _TYPES[self.environment]:
            text = f"invalid rule type '{kind}' for rule_env '{self.environment}'"
            raise bad_parameter("type", text)
        if kind == "group":
            if not re.fullmatch(_NAME, str(action)):
                raise bad_parameter("action", "invalid characters in security group name")
        elif kind == "forward" and action == "REJECT":
            raise bad_parameter("action", "cannot define REJECT rules on forward chain")
        elif action not in _ACTIONS:
            raise bad_parameter("action", f"unknown action '{action}'")

    def _check_interface(self, rule: Mapping[str, Any]) -> None:
        if not rule.get("iface"):
            return
        if self.environment in _WITHOUT_INTERFACE:
            raise bad_parameter("type", "parameter -i not allowed for this rule type")
        if self.environment in ("vm", "ct") and not re.fullmatch(r"net\d+", rule["iface"]):
            raise bad_parameter("iface", "value does not match the regex pattern 'net\\d+'")

    def _version(self, rule: Mapping[str, Any]) -> int | None:
        version = _ICMP.get(str(rule.get("proto")))
        for name in ("source", "dest"):
            if not rule.get(name):
                continue
            try:
                found = parse_addresses(rule[name])
            except FormatError as err:
                raise bad_parameter(name, str(err)) from err
            found = found or self._check_reference(name, rule[name])
            if version and found and found != version:
                raise bad_parameter(name, "detected mixed ipv4/ipv6 addresses in rule")
            version = version or found
        return version

    def _check_reference(self, name: str, value: str) -> int | None:
        """Check that an IP set or alias exists; return the IP version of an alias."""
        if value.startswith("+"):
            found = _IPSET.fullmatch(value)
            if not found:
                raise bad_parameter(name, f"invalid ipset name '{value}'")
            if not any(found[1] in config.ipset for config in self.configs):
                raise bad_parameter(name, f"no such ipset '{found[1]}'")
            return None
        parts = ALIAS.fullmatch(value)
        alias = parts[2].lower() if parts else ""
        for config in self.configs:
            if alias in config.aliases:
                return int(config.aliases[alias]["ipversion"])
        raise bad_parameter(name, f"no such alias '{value}'")


def _check_ports(rule: Mapping[str, Any]) -> None:
    protocol = rule.get("proto")
    for name in ("dport", "sport"):
        if not rule.get(name):
            continue
        icmp = name == "dport" and protocol in _ICMP
        try:
            parse_ports(rule[name], icmp=icmp)
        except FormatError as err:
            raise bad_parameter(name, str(err)) from err
        if not protocol:
            raise bad_parameter("proto", f"missing property - '{name}' requires this property")
        if protocol not in _WITH_PORTS and not icmp:
            raise bad_parameter(name, f"protocol '{protocol}' does not support ports")


def _check_icmp_type(rule: Mapping[str, Any]) -> None:
    icmp_type, protocol = rule.get("icmp-type"), rule.get("proto")
    if not icmp_type:
        return
    if protocol not in _ICMP:
        raise bad_parameter("proto", "missing property - 'icmp-type' requires this property")
    if rule.get("dport"):
        raise bad_parameter("icmp-type", "'icmp-type' cannot be specified together with 'dport'")
    if icmp_type not in (ICMP_TYPES if protocol == "icmp" else ICMPV6_TYPES):
        raise bad_parameter("icmp-type", f"invalid icmp-type '{icmp_type}' for proto '{protocol}'")
