"""Which traffic a firewall rule is for: whether another rule is for all of it, as far as the files tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_address, parse_interface
from stackyard.desired.firewall_ports import MACRO_PORTS, SERVICES
from stackyard.desired.firewall_words import WITH_PORTS, name_in

if TYPE_CHECKING:
    import ipaddress
    from collections.abc import Iterable, Mapping, Sequence

    from stackyard.sources.hypervisor.files import HypervisorFile

__all__ = ["CONDITIONS", "NamedAddresses"]

CONDITIONS = ("iface", "source", "dest", "proto", "macro", "sport", "dport")
_SERVICE = ("proto", "macro", "sport", "dport")
_NUMBERS = {"6": "tcp", "17": "udp", "33": "dccp", "132": "sctp", "136": "udplite"}
_PORTS = (0, 65535)
# First and last address, or port; of addresses also the version of IP.
_Span = tuple[int, int]
_Spans = dict[int, list[_Span]]
# A protocol, its ports and its source ports; everything where the protocol is empty.
_Service = tuple[str, list[_Span], list[_Span]]


@dataclass(frozen=True, slots=True)
class NamedAddresses:
    """What aliases and sets of the files stand for; a name that two clusters have is not known.

    Attributes:
        aliases: The address or network of each alias.
        sets: The entries of each set, with whether they are excepted.
    """

    aliases: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, Sequence[tuple[str, bool]]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Iterable[HypervisorFile]) -> NamedAddresses:
        """Return what the files of clusters say."""
        aliases: dict[str, list[str]] = {}
        sets: dict[str, list[list[tuple[str, bool]]]] = {}
        for file in files:
            for one in file.section("firewall.aliases"):
                aliases.setdefault(one.name.lower(), []).append(one.values["cidr"])
            for one in file.section("firewall.ipsets"):
                # One that lost an entry to a mistake is another set than the one that is meant.
                entries = [] if file.is_lost(*one.path) else one.values.get("entries") or ()
                said = [(str(each["name"]), bool(each.get("nomatch"))) for each in entries]
                sets.setdefault(one.name.lower(), []).append(said)
        return cls(
            {name: found[0] for name, found in aliases.items() if len(found) == 1},
            {name: found[0] for name, found in sets.items() if len(found) == 1},
        )

    def takes(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
        """Return whether whatever matches the second rule is known to match the first."""
        if first.get("iface") not in (None, second.get("iface")):
            return False
        if not all(self._has_addresses(first.get(key), second.get(key)) for key in ("source", "dest")):
            return False
        if all(first.get(key) in (None, second.get(key)) for key in _SERVICE):
            return True
        services = _services(first), _services(second)
        return bool(services[1]) and all(any(_has_service(a, b) for a in services[0]) for b in services[1])

    def _has_addresses(self, first: str | None, second: str | None) -> bool:
        """Return whether the addresses of one rule are all among those of another."""
        if first is None or first == second:
            return True
        if second is None:
            return False
        spans = self._spans(first, most=False), self._spans(second, most=True)
        if spans[0] is None or not spans[1]:
            return False
        has = {version: _join(found) for version, found in spans[0].items()}
        return all(
            _is_inside(one, has.get(version, [])) for version, found in spans[1].items() for one in found
        )

    def _spans(self, text: str, *, most: bool) -> _Spans | None:
        """Return the addresses of a source or destination; None where they are not known.

        Args:
            text: What the rule says.
            most: Whether more than it has may be returned; else what is excepted makes it unknown.
        """
        named = name_in(text)
        if named is None:
            return _collect(map(_span, text.split(",")))
        if named.scope == "sdn":
            return None
        if not named.is_set:
            known = self.aliases.get(named.name.lower())
            return None if known is None else _collect([_span(known)])
        entries = self.sets.get(named.name.lower())
        if not entries or (not most and any(is_excepted for _, is_excepted in entries)):
            return None
        texts = [name for name, is_excepted in entries if not is_excepted]
        return _collect(_span(self.aliases.get(_bare(one), one)) for one in texts)


def _bare(name: str) -> str:
    return name.removeprefix("dc/").lower()


def _collect(spans: Iterable[tuple[int, _Span] | None]) -> _Spans | None:
    found: _Spans = {}
    for one in spans:
        if one is None:
            return None
        found.setdefault(one[0], []).append(one[1])
    return found


def _span(text: str) -> tuple[int, _Span] | None:
    """Return the version, the first and the last address of a network or range; None where it is none."""
    first, dash, last = text.strip().partition("-")
    try:
        if dash:
            ends = parse_address(first), parse_address(last)
            return ends[0].version, (int(ends[0]), int(ends[1]))
        network: ipaddress.IPv4Network | ipaddress.IPv6Network = parse_interface(first).network
    except ValueError:
        return None
    return network.version, (int(network.network_address), int(network.broadcast_address))


def _services(rule: Mapping[str, Any]) -> list[_Service]:
    """Return the protocols and ports of a rule; none where they are not known."""
    said = {key: rule[key] for key in _SERVICE if rule.get(key) is not None}
    if not said:
        return [("", [_PORTS], [_PORTS])]
    if "macro" in said:
        # With more than a macro, both count.
        parts = MACRO_PORTS.get(str(said["macro"]).lower(), ()) if len(said) == 1 else ()
        return [(part[0], _ports(part[1]), _ports(part[2] if len(part) > 2 else None)) for part in parts]
    proto = _NUMBERS.get(str(said.get("proto")), str(said.get("proto")))
    if proto not in WITH_PORTS and len(said) > 1:
        return []
    ports = _ports(said.get("dport")), _ports(said.get("sport"))
    return [(proto, *ports)] if all(ports) else []


def _ports(text: str | None) -> list[_Span]:
    """Return the ports of a list; none where one is not known."""
    if text is None:
        return [_PORTS]
    found = []
    for part in text.split(","):
        first, _, last = part.partition(":")
        ends = [int(one) if one.isdecimal() else SERVICES.get(one) for one in (first, last or first)]
        if ends[0] is None or ends[1] is None:
            return []
        found.append((ends[0], ends[1]))
    return found


def _has_service(first: _Service, second: _Service) -> bool:
    """Return whether one protocol with its ports has all of another."""
    if first[0] not in ("", second[0]):
        return False
    return all(
        _is_inside(one, _join(has))
        for has, wanted in ((first[1], second[1]), (first[2], second[2]))
        for one in wanted
    )


def _join(spans: list[_Span]) -> list[_Span]:
    """Return spans with those joined that touch."""
    joined: list[_Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _is_inside(one: _Span, spans: list[_Span]) -> bool:
    return any(first <= one[0] and one[1] <= last for first, last in spans)
