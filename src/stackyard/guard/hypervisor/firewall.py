"""The firewall of a cluster and its nodes: whether a connection to a node gets in, decided as Proxmox does.

A node first looks at its own rules, then at those of the cluster, in their order. Then it accepts its own
services from the addresses of the set `management`, to which its local network belongs. What is left gets the
policy of the cluster. A rule of which nobody can tell whether it is meant leaves the answer open.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Connection", "Firewall", "NodeFirewall", "Rule", "admits"]

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ACCEPT = "ACCEPT"
_TCP = ("tcp", "6")
# The macros and names of services that stand for the ports of a node.
_MACROS = {"ssh": 22, "pmg": 8006}
_SERVICES = {"ssh": 22}
_MANAGEMENT = "management"
_LOCAL = "local_network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; a group of rules where `group` is given."""

    action: str = ""
    group: str = ""
    direction: str = "in"
    is_enabled: bool = True
    source: str = ""
    dest: str = ""
    proto: str = ""
    dport: str = ""
    sport: str = ""
    iface: str = ""
    macro: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFirewall:
    """What a node has of its own.

    Attributes:
        address: Its address.
        network: Its local network, None where that is not known.
        is_enabled: Whether it has a firewall at all.
        rules: Its rules; None where nobody could read them.
    """

    address: str = ""
    network: Network | None = None
    is_enabled: bool = True
    rules: tuple[Rule, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Firewall:
    """What the cluster has.

    Attributes:
        is_enabled: Whether it has a firewall.
        policy: What becomes of that for which there is no rule.
        rules: Its rules; None where nobody could read them.
        groups: The rules of each group.
        sets: The addresses of each set, those that are excepted with an exclamation mark before.
        aliases: The address of each alias.
    """

    is_enabled: bool = False
    policy: str = "DROP"
    rules: tuple[Rule, ...] | None = ()
    groups: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Somebody who connects to a port of a node; an empty address is not known."""

    source: str
    port: int


def admits(firewall: Firewall, node: NodeFirewall, connection: Connection) -> bool | None:
    """Return whether a node accepts a connection; None where that cannot be decided."""
    if not firewall.is_enabled or not node.is_enabled:
        return True
    source = _parse(connection.source)
    if source is not None and source.is_loopback:
        # What a node says to itself is never filtered.
        return True
    if node.rules is None or firewall.rules is None:
        return None
    look = _Look(firewall=firewall, node=node, source=source, port=connection.port)
    # What rules may do to it of which nobody can tell whether they are meant.
    maybe: set[bool] = set()
    for rule in look.expand((*node.rules, *firewall.rules)):
        is_meant, accepts = look.matches(rule), rule.action.upper() == _ACCEPT
        if is_meant:
            return None if (not accepts) in maybe else accepts
        if is_meant is None:
            maybe.add(accepts)
    accepts_rest = firewall.policy.upper() == _ACCEPT or look.is_in_set(_MANAGEMENT, source)
    return None if accepts_rest is None or (not accepts_rest) in maybe else accepts_rest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """One connection, held against rules; None is that nobody can tell."""

    firewall: Firewall
    node: NodeFirewall
    source: Address | None
    port: int

    def expand(self, rules: tuple[Rule, ...]) -> Iterator[Rule]:
        """Return the rules that count for what comes in, those of groups in their place."""
        for rule in rules:
            if not rule.is_enabled:
                continue
            if rule.group:
                for inner in self.firewall.groups.get(rule.group, ()):
                    if inner.is_enabled and inner.direction == "in":
                        yield replace(inner, iface=rule.iface) if rule.iface else inner
            elif rule.direction == "in":
                yield rule

    def matches(self, rule: Rule) -> bool | None:
        """Return whether a rule is meant for the connection."""
        return _all(
            (
                self._fits_service(rule),
                None if rule.sport or rule.iface else True,
                self._fits(rule.source, self.source),
                self._fits(rule.dest, _parse(self.node.address)),
            )
        )

    def _fits_service(self, rule: Rule) -> bool:
        if rule.macro:
            return _MACROS.get(rule.macro.lower()) == self.port
        if rule.proto and rule.proto.lower() not in _TCP:
            return False
        return not rule.dport or any(_has_port(part, self.port) for part in rule.dport.split(","))

    def _fits(self, listed: str, address: Address | None) -> bool | None:
        """Return whether an address is among those of a rule."""
        if not listed:
            return True
        return _any(self._is(part.strip(), address) for part in listed.split(","))

    def _is(self, part: str, address: Address | None) -> bool | None:
        name = part.lower().removeprefix("+").removeprefix("dc/")
        if part.startswith("+"):
            return self.is_in_set(name, address)
        network = _parse_network(self.firewall.aliases.get(name, part))
        if network is not None:
            return None if address is None else address in network
        first, sign, last = part.partition("-")
        low, high = _parse(first), _parse(last)
        if not sign or low is None or high is None or address is None:
            return None
        return low.version == address.version and int(low) <= int(address) <= int(high)

    def is_in_set(self, name: str, address: Address | None) -> bool | None:
        """Return whether an address is in a set."""
        entries = self.firewall.sets.get(name, ())
        excepted = _any(self._is(entry[1:], address) for entry in entries if entry.startswith("!"))
        listed = _any(self._is(entry, address) for entry in entries if not entry.startswith("!"))
        if name == _MANAGEMENT:
            local = _parse_network(self.firewall.aliases.get(_LOCAL, "")) or self.node.network
            is_local = None if local is None or address is None else address in local
            listed = _any(iter((listed, is_local)))
        return _all((listed, None if excepted is None else not excepted))


def _has_port(part: str, port: int) -> bool:
    first, _, last = part.strip().partition(":")
    low, high = (_SERVICES.get(text.lower(), text) for text in (first, last or first))
    return str(low).isdecimal() and str(high).isdecimal() and int(low) <= port <= int(high)


def _all(found: tuple[bool | None, ...]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


def _any(found: Iterator[bool | None]) -> bool | None:
    answers = list(found)
    if True in answers:
        return True
    return None if None in answers else False


def _parse(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None


def _parse_network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return None
