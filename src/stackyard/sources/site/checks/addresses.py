"""Addresses of guests: inside their network, with a gateway that they reach, and no one else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.site.addresses import Interface
from stackyard.sources.site.damaged import is_lost
from stackyard.sources.site.entities.networks import SdnNetwork
from stackyard.sources.site.hosts import host_address, node_address
from stackyard.sources.site.networks import has_known_cards

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.networks import DeclaredNetwork, NetworkCard, Networks

__all__ = ["check_addresses"]

OUTSIDE = Kind(
    code="E-SITE-ADDRESS",
    summary="An address does not fit its network",
    remedy="Correct the address or its prefix length, or plug the guest into another network.",
)
BAD_GATEWAY = Kind(
    code="E-SITE-GATEWAY",
    summary="A gateway cannot be reached",
    remedy="Write a `gateway` inside the network of the guest's address, or `gateway: null` for none.",
)
USED_TWICE = Kind(
    code="E-SITE-ADDRESS-TWICE",
    summary="An address is used twice",
    remedy="Give one of the two another address.",
)
SHARED = Kind(
    code="W-SITE-ADDRESS-SHARED",
    summary="Guests of two envs have the same address",
    remedy="Change one of them, unless the two never run at the same time.",
    severity=Severity.WARNING,
)

# Bridge, VLAN and address: the same address on two separate networks is two addresses.
_Spot = tuple[str, int | None, int, int]


def check_addresses(site: Site, found: Diagnostics) -> None:
    """Check the addresses of every guest of every env."""
    machines = _machines(site)
    elsewhere: dict[_Spot, tuple[str, str | None, GuestEntry]] = {}
    for name, env in site.envs.items():
        if is_lost(env.places, "networks"):
            continue
        networks = site.networks(name)
        here: dict[_Spot, GuestEntry] = {}
        for guest in filter(has_known_cards, site.guests(name)):
            for card in networks.cards(guest):
                _check_card(guest, card, networks, found)
                interface = card.interface
                if interface is None:
                    continue
                _check_machines(guest, card, interface, machines, found)
                spot = (card.values["bridge"], card.values.get("vlan"), interface.version, interface.number)
                if here.setdefault(spot, guest) is not guest:
                    detail = f"'{here[spot].name}' and '{guest.name}' both have {interface.address}."
                    found.add(USED_TWICE, detail, card.place(guest, f"ipv{interface.version}"))
                else:
                    _check_elsewhere(found, elsewhere, spot, (name, env.model.node, guest), card)


def _machines(site: Site) -> dict[tuple[int, int], str]:
    """Return who has which address: nodes, hosts, and the gateway of the site."""
    named = [
        *((f"the node '{node.name}'", node_address(node)) for node in site.nodes.values()),
        *((f"the host '{host.name}'", host_address(host)) for host in site.hosts.values()),
        ("the gateway of the site", site.settings.defaults.gateway),
    ]
    result: dict[tuple[int, int], str] = {}
    for who, address in named:
        if address is not None:
            interface = Interface.parse(address)
            result.setdefault((interface.version, interface.number), who)
    return result


def _check_card(guest: GuestEntry, card: NetworkCard, networks: Networks, found: Diagnostics) -> None:
    interface, network = card.interface, card.network
    if interface is None:
        if card.index == 0 and guest.values.get("gateway") is not None:
            detail = f"'{guest.name}' has a `gateway` and no static address to go with it."
            found.add(BAD_GATEWAY, detail, card.place(guest, "gateway4"))
        return
    where = f"ipv{interface.version}"
    if network is not None and network.cidr is not None and network.cidr.version == interface.version:
        if not network.cidr.holds(interface):
            detail = f"{interface.address} of '{guest.name}' is outside '{network.name}', {network.cidr}."
            found.add(OUTSIDE, detail, card.place(guest, where))
        elif interface.prefix != network.cidr.prefix:
            detail = f"{interface} of '{guest.name}' has another prefix length than {network.cidr}."
            found.add(OUTSIDE, detail, card.place(guest, where))
    _check_ends(guest, card, interface, found)
    gateway = card.values.get(f"gateway{interface.version}")
    if gateway is not None:
        _check_gateway(guest, card, interface, gateway, found)
    elif network is not None and _takes_gateway(guest, network, networks, interface):
        detail = f"'{guest.name}' has {interface.address}, the gateway of the network '{network.name}'."
        found.add(USED_TWICE, detail, card.place(guest, where))


def _takes_gateway(
    guest: GuestEntry, network: DeclaredNetwork, networks: Networks, interface: Interface
) -> bool:
    return networks.gateway_of(network) == interface.address and network.model.router != guest.name


def _check_ends(guest: GuestEntry, card: NetworkCard, interface: Interface, found: Diagnostics) -> None:
    """Check that an IPv4 address is not that of the network itself or of everyone in it."""
    if interface.version != 4 or interface.prefix >= 31:
        return
    hosts = (1 << (32 - interface.prefix)) - 1
    if interface.number & hosts in (0, hosts):
        detail = f"{interface} of '{guest.name}' is the network or broadcast address of its network."
        found.add(OUTSIDE, detail, card.place(guest, "ipv4"))


def _check_gateway(
    guest: GuestEntry, card: NetworkCard, interface: Interface, gateway: str, found: Diagnostics
) -> None:
    reached = Interface.parse(gateway)
    field = f"gateway{interface.version}"
    # Where it is written is looked up only if it is wrong: that parses the file once more.
    blamed = field if card.gateway_source == "guest" else f"ipv{interface.version}"
    if reached.version != interface.version:
        detail = f"{gateway} and {interface} are of two IP versions."
        found.add(BAD_GATEWAY, detail, card.place(guest, blamed))
    elif reached.number == interface.number:
        detail = f"'{guest.name}' has {gateway}, which is also its gateway."
        found.add(USED_TWICE, detail, card.place(guest, blamed))
    elif not interface.network.holds(reached) and not (reached.version == 6 and gateway.startswith("fe80")):
        source = {"site": "the site's", "network": "the network's"}.get(card.gateway_source or "", "its")
        detail = f"{gateway}, {source} gateway, is outside {interface.network}, where '{guest.name}' is."
        found.add(BAD_GATEWAY, detail, card.place(guest, blamed))


def _check_machines(
    guest: GuestEntry,
    card: NetworkCard,
    interface: Interface,
    machines: dict[tuple[int, int], str],
    found: Diagnostics,
) -> None:
    owner = machines.get((interface.version, interface.number))
    # A network of the SDN is one of its own, which the machines are not in.
    is_apart = card.network is not None and isinstance(card.network.model, SdnNetwork)
    if (
        owner is not None
        and not is_apart
        and card.values.get(f"gateway{interface.version}") != interface.address
    ):
        detail = f"'{guest.name}' has {interface.address}, which is that of {owner}."
        found.add(USED_TWICE, detail, card.place(guest, f"ipv{interface.version}"))


def _check_elsewhere(
    found: Diagnostics,
    elsewhere: dict[_Spot, tuple[str, str | None, GuestEntry]],
    spot: _Spot,
    here: tuple[str, str | None, GuestEntry],
    card: NetworkCard,
) -> None:
    env, node, guest = here
    other_env, other_node, other = elsewhere.setdefault(spot, here)
    if other_env != env:
        kind = USED_TWICE if node is not None and node == other_node else SHARED
        detail = f"'{guest.name}' has an address that '{other.name}' of the env '{other_env}' has too."
        found.add(kind, detail, card.place(guest, "ipv4"), also=(other.place(("ip",), ("nics",)),))
