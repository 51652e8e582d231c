"""Addresses of interfaces and subnets: valid, apart from each other, with gateways in reach."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.addresses import Address, Interface, parse_address, parse_interface
from stackyard.base.diagnostics import Kind, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.base.errors import Location
    from stackyard.sources.hypervisor.build import Entry
    from stackyard.sources.hypervisor.files import HypervisorFile, Key, SiteFacts

__all__ = ["BAD_ADDRESS", "BAD_GATEWAY", "OVERLAP", "check_addresses", "is_network", "overlap"]

BAD_ADDRESS = Kind(
    code="E-HYPERVISOR-ADDRESS",
    summary="An address does not fit",
    remedy="Correct the address; an interface has one with its prefix length, as 192.0.2.10/24.",
)
OVERLAP = Kind(
    code="E-HYPERVISOR-OVERLAP",
    summary="Two networks overlap",
    remedy="Give one of the two another address or a longer prefix.",
)
SHARED = Kind(
    code="W-HYPERVISOR-ADDRESS-SHARED",
    summary="Two nodes have the same address",
    remedy="Change one of them, unless the two networks are apart.",
    severity=Severity.WARNING,
)
BAD_GATEWAY = Kind(
    code="E-HYPERVISOR-GATEWAY",
    summary="A gateway cannot be reached",
    remedy="Write a gateway inside the network of the address; a node has one for each IP version.",
)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An address and who has it."""

    who: str
    interface: Interface
    where: Location


def check_addresses(files: Sequence[HypervisorFile], site: SiteFacts, found: Diagnostics) -> None:
    """Check the addresses of nodes and the subnets of the SDN."""
    del site
    elsewhere: dict[str, tuple[HypervisorFile, _Placed]] = {}
    for file in files:
        _check_plain(file, found)
        if not file.is_node:
            _check_subnets(file, found)
            continue
        placed = list(_node_addresses(file, found))
        _check_apart(placed, found)
        for one in placed:
            other, first = elsewhere.setdefault(str(one.interface.ip), (file, one))
            if other is not file:
                detail = f"'{one.who}' has {one.interface.ip}, and so has '{first.who}' of '{other.node}'."
                found.add(SHARED, detail, one.where, also=(first.where,))


def _check_apart(placed: list[_Placed], found: Diagnostics) -> None:
    for number, one in enumerate(placed):
        for first in placed[:number]:
            if overlap(first.interface.network, one.interface.network):
                detail = f"{one.interface} of '{one.who}' overlaps {first.interface} of '{first.who}'."
                found.add(OVERLAP, detail, one.where, also=(first.where,))
                break


def overlap(
    one: ipaddress.IPv4Network | ipaddress.IPv6Network, other: ipaddress.IPv4Network | ipaddress.IPv6Network
) -> bool:
    """Return whether two networks have addresses in common."""
    if isinstance(one, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return one.overlaps(other)
    if isinstance(one, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
        return one.overlaps(other)
    return False


def _node_addresses(file: HypervisorFile, found: Diagnostics) -> Iterator[_Placed]:
    gateways: dict[int, str] = {}
    for entry in file.section("bonds", "bridges", "vlans"):
        for attribute, version in (("address", 4), ("address6", 6)):
            interface = _parse_interface(file, entry, attribute, version, found)
            if interface is not None:
                yield _Placed(entry.name, interface, file.place(entry, attribute))
            _check_gateway(file, entry, version, interface, found)
            if entry.values.get(f"gateway{attribute[7:]}") is not None:
                first = gateways.setdefault(version, entry.name)
                if first != entry.name:
                    detail = f"'{entry.name}' has a gateway for IPv{version}, and so has '{first}'."
                    found.add(BAD_GATEWAY, detail, file.place(entry, f"gateway{attribute[7:]}"))


def _parse_interface(
    file: HypervisorFile, entry: Entry, attribute: str, version: int, found: Diagnostics
) -> Interface | None:
    text = entry.values.get(attribute)
    if text is None:
        return None
    try:
        interface = parse_interface(text)
    except ValueError:
        interface = None
    if interface is None or "/" not in text or interface.version != version:
        detail = f"'{text}' of '{entry.name}' is no IPv{version} address with a prefix length."
        found.add(BAD_ADDRESS, detail, file.place(entry, attribute))
        return None
    why = _find_misuse(interface)
    if why:
        detail = f"'{text}' of '{entry.name}' is {why}, which no interface can have."
        found.add(BAD_ADDRESS, detail, file.place(entry, attribute))
    return interface


def _find_misuse(interface: Interface) -> str:
    """Return what an address is that is for no single host; empty where it is for one."""
    address, network = interface.ip, interface.network
    if address.is_multicast or address.is_unspecified or address.is_loopback:
        return "no address of a host"
    # The first address of an IPv6 network is that of its routers.
    if network.version == 4 and network.num_addresses > 2:
        ends = ((network.network_address, "network"), (network.broadcast_address, "broadcast"))
        return next((f"the {word} address of {network}" for end, word in ends if end == address), "")
    return ""


def _check_gateway(
    file: HypervisorFile, entry: Entry, version: int, interface: Interface | None, found: Diagnostics
) -> None:
    key = "gateway" if version == 4 else "gateway6"
    said = entry.values.get(key)
    if said is None:
        return
    gateway = _parse_address(said)
    if gateway is None or gateway.version != version:
        detail = f"'{said}' of '{entry.name}' is no IPv{version} address."
    elif interface is None:
        if entry.values.get("address" if version == 4 else "address6") is not None:
            return
        detail = f"'{entry.name}' has a gateway and no IPv{version} address to reach it from."
    elif gateway == interface.ip:
        detail = f"'{entry.name}' has {said}, which is also its gateway."
    elif gateway not in interface.network and not gateway.is_link_local:
        detail = f"{said} is outside {interface.network}, where '{entry.name}' is."
    else:
        return
    found.add(BAD_GATEWAY, detail, file.place(entry, key))


def _parse_address(text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError:
        return None


def is_network(text: str) -> bool:
    """Return whether a text is an address or a network."""
    try:
        parse_interface(text)
    except ValueError:
        return False
    return True


def _check_subnets(file: HypervisorFile, found: Diagnostics) -> None:
    zones = {vnet.name: str(vnet.values.get("zone")) for vnet in file.section("sdn.vnets")}
    by_zone: dict[str, list[_Placed]] = {}
    for entry in file.section("sdn.subnets"):
        network = _parse_network(entry.values["cidr"])
        if network is None:
            detail = f"'{entry.values['cidr']}' is no network, as 192.0.2.0/24."
            found.add(BAD_ADDRESS, detail, file.place(entry, "cidr"))
            continue
        vnet = entry.values["vnet"]
        placed = _Placed(vnet, parse_interface(str(network)), file.place(entry, "cidr"))
        # Two zones are networks of their own, that may have the same addresses.
        by_zone.setdefault(zones.get(vnet, f"vnet {vnet}"), []).append(placed)
        span = entry.values.get("dhcp_range") or {}
        for keys in (("gateway",), ("dhcp_range", "start_address"), ("dhcp_range", "end_address")):
            said = span.get(keys[1]) if len(keys) == 2 else entry.values.get(keys[0])
            address = None if said is None else _parse_address(said)
            if said is not None and (address is None or address not in network):
                detail = f"{said} is outside the subnet {network} of '{vnet}'."
                found.add(BAD_ADDRESS, detail, file.place(entry, *keys))
    for placed_here in by_zone.values():
        _check_apart(placed_here, found)


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        parse_interface(text)
        return ipaddress.ip_network(text) if "/" in text else None
    except ValueError:
        return None


def _check_plain(file: HypervisorFile, found: Diagnostics) -> None:
    """Check the addresses that stand for themselves: of DNS servers, hosts, aliases and sets."""
    single: list[tuple[Entry, tuple[Key, ...], str]] = []
    for entry in file.section("dns"):
        servers = entry.values.get("servers") or ()
        single += [(entry, ("servers", index), one) for index, one in enumerate(servers)]
    for entry in file.section("hosts"):
        hosts = entry.values.get("entries") or ()
        single += [(entry, ("entries", index, "address"), one["address"]) for index, one in enumerate(hosts)]
    for entry, keys, text in single:
        if _parse_address(text) is None:
            found.add(BAD_ADDRESS, f"'{text}' is no IP address.", file.place(entry, *keys))
    for entry in file.section("firewall.aliases"):
        if not is_network(entry.values["cidr"]):
            detail = f"'{entry.values['cidr']}' is no address and no network."
            found.add(BAD_ADDRESS, detail, file.place(entry, "cidr"))
