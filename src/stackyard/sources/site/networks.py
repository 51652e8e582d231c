"""The networks that an env can use, and what its guests plug into them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.site.addresses import Interface, Network
from stackyard.sources.site.entities.networks import BridgeNetwork, SdnNetwork, VlanNetwork
from stackyard.sources.site.layers import FIRST_NIC, NIC_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import Location
    from stackyard.sources.site.document import Key, LocatedValues
    from stackyard.sources.site.entities.site import SiteDefaults
    from stackyard.sources.site.layers import GuestEntry
    from stackyard.sources.site.load import Site

__all__ = [
    "DEFAULT_BRIDGE",
    "DeclaredNetwork",
    "NetworkCard",
    "Networks",
    "has_known_cards",
    "networks_of",
    "read_shared_networks",
]

DEFAULT_BRIDGE = "vmbr0"
# What decides the cards of a guest.
_OF_CARDS = (*sorted(NIC_KEYS), "imported", "name", "nics", "template")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNetwork:
    """A network that the site or an env declares.

    Attributes:
        name: What guests call it.
        model: What was written.
        places: The file.
        path: Where it is in there.
        is_shared: Whether it is the site's, and so not an env's to make.
        cidr: Its addresses, where they are known.
    """

    name: str
    model: BridgeNetwork | VlanNetwork | SdnNetwork
    places: LocatedValues
    path: tuple[Key, ...]
    is_shared: bool
    cidr: Network | None

    @property
    def bridge(self) -> str:
        """What a card plugs into."""
        if isinstance(self.model, SdnNetwork):
            return self.model.vnet or self.name
        return self.model.bridge

    @property
    def vlan(self) -> int | None:
        """The VLAN of a card."""
        return self.model.tag if isinstance(self.model, VlanNetwork) else None

    def place(self, *keys: Key) -> Location:
        """Return where it, or a part of it, is written."""
        return self.places.place((*self.path, *keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkCard:
    """A network card of a guest.

    Attributes:
        index: Which card, from zero.
        values: Its fields, as the `Desired` model names them.
        network: The network that it is in, where that is declared.
        gateway_source: Who gave its gateway: `guest`, `network`, `site`, or no one.
    """

    index: int
    values: dict[str, Any]
    network: DeclaredNetwork | None
    gateway_source: str | None

    def place(self, guest: GuestEntry, field: str) -> Location:
        """Return where a field of the card is written, or what decides it."""
        paths: list[tuple[Key, ...]] = [("nics", self.index, field)]
        if self.index == 0:
            paths.append((FIRST_NIC.get(field, field),))
        return guest.place(*paths, ("nics", self.index, "network"), ("network",), ("nics", self.index))

    @property
    def interface(self) -> Interface | None:
        """The static IPv4 address, or else the static IPv6 one."""
        for field in ("ipv4", "ipv6"):
            text = self.values.get(field)
            if text is not None and "/" in text:
                return Interface.parse(text)
        return None


class Networks:
    """The networks that an env can use.

    Args:
        declared: By name.
        defaults: What the site says for guests that say nothing.
    """

    def __init__(self, declared: Mapping[str, DeclaredNetwork], defaults: SiteDefaults) -> None:
        self.declared = declared
        self._bridge = defaults.bridge or DEFAULT_BRIDGE
        self._gateway = defaults.gateway
        self._by_plug = {(network.bridge, network.vlan): network for network in declared.values()}
        self.routers: dict[str, str] = {}
        self._cards: dict[int, list[NetworkCard]] = {}

    def gateway_of(self, network: DeclaredNetwork) -> str | None:
        """Return the gateway of a network: what it says, or the address that its router has in it."""
        return network.model.gateway or self.routers.get(network.name)

    def cards(self, guest: GuestEntry) -> list[NetworkCard]:
        """Return the cards of a guest, with what the networks and the site say for it."""
        known = self._cards.get(guest.index)
        if known is None:
            known = self._cards[guest.index] = self._cards_of(guest)
        return known

    def _cards_of(self, guest: GuestEntry) -> list[NetworkCard]:
        values = guest.values
        nics = values.get("nics")
        has_short = any(key in values for key in NIC_KEYS)
        if nics is not None and not nics and not has_short:
            return []
        first = self._first(guest, _drop_null(nics[0]) if nics else {})
        rest = [self._card(index, _drop_null(nic), nic) for index, nic in enumerate((nics or [])[1:], 1)]
        return [first, *rest]

    def forget_cards(self) -> None:
        """Make the cards again when they are next asked for."""
        self._cards.clear()

    def _first(self, guest: GuestEntry, nic: dict[str, Any]) -> NetworkCard:
        values = guest.values
        for field, short in FIRST_NIC.items():
            if short in values and field not in ("ipv6", "gateway6"):
                nic.pop(field, None)
        given = {
            key: values[key] for key in ("bridge", "network", "vlan", "mac") if values.get(key) is not None
        }
        is_imported = bool(values.get("imported"))
        address = {} if is_imported and values.get("ip") is None else _address(values.get("ip"), nic)
        card = self._card(0, {**nic, **given, **address}, given)
        # What is there has the gateway that it has, or none.
        return card if is_imported and "gateway" not in values else self._with_gateway(card, guest)

    def _card(self, index: int, fields: dict[str, Any], given: Mapping[str, Any]) -> NetworkCard:
        named = fields.pop("network", None)
        network = self.declared.get(named) if named is not None else None
        if network is not None:
            fields["bridge"] = network.bridge
            if network.vlan is not None:
                fields["vlan"] = network.vlan
        elif fields.get("bridge") is None:
            fields["bridge"] = self._bridge
        if network is None:
            network = self._by_plug.get((fields["bridge"], fields.get("vlan")))
        source = "guest" if given.get("gateway4") or given.get("gateway6") else None
        return NetworkCard(index=index, values=fields, network=network, gateway_source=source)

    def _with_gateway(self, card: NetworkCard, guest: GuestEntry) -> NetworkCard:
        """Return the first card with its gateway; others lead out only where they say so."""
        field = (
            "gateway6"
            if "/" in card.values.get("ipv6", "") and "/" not in card.values.get("ipv4", "")
            else "gateway4"
        )
        if "gateway" in guest.values:
            source, gateway = "guest", guest.values["gateway"]
        elif card.interface is None:
            return card
        elif card.network is not None and self.gateway_of(card.network) is not None:
            is_router = card.network.model.router == guest.name
            source, gateway = "network", None if is_router else self.gateway_of(card.network)
        else:
            source, gateway = "site", self._gateway
        if gateway is None:
            return card
        if card.interface is None and source == "guest":
            # Said for a card that gets its addresses by DHCP: old sites do, and it means nothing there.
            return card
        values = {**card.values, field: gateway}
        return NetworkCard(index=0, values=values, network=card.network, gateway_source=source)


def has_known_cards(guest: GuestEntry) -> bool:
    """Return whether all is known that decides the cards of a guest, whatever else is wrong with its file."""
    return guest.knows(*_OF_CARDS)


def _drop_null(nic: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in nic.items() if value is not None}


def _address(ip: str | None, nic: Mapping[str, Any]) -> dict[str, str]:
    """Return the short form of an address in the fields of the model."""
    if ip is None:
        return {} if nic.get("ipv4") or nic.get("ipv6") else {"ipv4": "dhcp"}
    return {"ipv6": ip} if ":" in ip or ip == "auto" else {"ipv4": ip}


def networks_of(site: Site, env: str) -> Networks:
    """Return the networks that an env can use: its own, and the site's."""
    loaded = site.envs[env]
    own = _make_declared(loaded.model.networks, loaded.places, is_shared=False)
    networks = Networks({**read_shared_networks(site).declared, **own}, site.settings.defaults)
    _find_routers(networks, site, env)
    return networks


def read_shared_networks(site: Site) -> Networks:
    """Return the networks that the site declares for every env."""
    shared = (
        {} if site.file is None else _make_declared(site.settings.networks, site.file.places, is_shared=True)
    )
    return Networks(shared, site.settings.defaults)


def _make_declared(
    models: Mapping[str, Any], places: LocatedValues, *, is_shared: bool
) -> dict[str, DeclaredNetwork]:
    return {
        name: DeclaredNetwork(
            name=name,
            model=model,
            places=places,
            path=("networks", name),
            is_shared=is_shared,
            cidr=None if model.cidr is None else Network.parse(model.cidr),
        )
        for name, model in models.items()
    }


def _find_routers(networks: Networks, site: Site, env: str) -> None:
    """Note the address of each router in its network, which is what the others go through."""
    wanted = {network.model.router for network in networks.declared.values() if network.model.router}
    if not wanted:
        return
    for guest in site.guests(env):
        if guest.name in wanted:
            for card in networks.cards(guest):
                network, interface = card.network, card.interface
                if network is not None and network.model.router == guest.name and interface is not None:
                    networks.routers[network.name] = interface.address
    # They were created before the routers were known.
    networks.forget_cards()
