"""Networks fit together, and their routers are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.sources.site.build import build_shared
from stackyard.sources.site.build_guest import NodeChoice
from stackyard.sources.site.damaged import is_lost
from stackyard.sources.site.entities.networks import SdnNetwork
from stackyard.sources.site.networks import has_known_cards, read_shared_networks
from stackyard.sources.site.tree import DEFINED_TWICE

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.networks import DeclaredNetwork, Networks

__all__ = ["check_networks"]

BAD_NETWORK = Kind(
    code="E-SITE-NETWORK",
    summary="A network is not right",
    remedy="Correct the network in site.yaml or in the env.",
)
BAD_ROUTER = Kind(
    code="E-SITE-ROUTER",
    summary="The router of a network does not fit",
    remedy="Name a guest of the env that has a static address in the network: the gateway of all others.",
)

_SDN_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]{0,7}")


def check_networks(site: Site, found: Diagnostics) -> None:
    """Check the networks of the site and of each env."""
    for network in read_shared_networks(site).declared.values():
        _check_network(network, found)
        if network.model.router is not None and network.model.gateway is None:
            detail = f"The router '{network.model.router}' of '{network.name}' is a guest of one env only."
            found.add(BAD_ROUTER, f"{detail} Write the `gateway` for the others.", network.place("router"))
    if site.file is not None:
        build_shared(site, NodeChoice(name="node", datastore="datastore"), found)
    for name, env in site.envs.items():
        networks = site.networks(name)
        for own in set(env.model.networks) & set(site.settings.networks):
            detail = f"The network '{own}' is declared here and in site.yaml."
            found.add(DEFINED_TWICE, detail, env.places.key_place(("networks", own)))
        for network in networks.declared.values():
            if not network.is_shared and not is_lost(env.places, *network.path):
                _check_router(site, name, networks, network, found)
                _check_network(network, found)


def _check_network(network: DeclaredNetwork, found: Diagnostics) -> None:
    if isinstance(network.model, SdnNetwork) and not _SDN_NAME.fullmatch(network.bridge):
        detail = (
            f"'{network.bridge}' cannot name a vnet: up to eight letters and digits, a letter first. "
            "Write another `vnet`."
        )
        found.add(BAD_NETWORK, detail, network.places.key_place(network.path))


def _check_router(
    site: Site, env: str, networks: Networks, network: DeclaredNetwork, found: Diagnostics
) -> None:
    router = network.model.router
    # The router may be one of those guests whose names or addresses are not known.
    if router is None or not all(map(has_known_cards, site.guests(env))):
        return
    if router not in {guest.name for guest in site.guests(env)}:
        found.add(BAD_ROUTER, f"The env has no guest '{router}'.", network.place("router"))
        return
    address = networks.routers.get(network.name)
    if address is None:
        detail = f"'{router}' has no static address in the network '{network.name}'."
        found.add(BAD_ROUTER, detail, network.place("router"))
    elif network.model.gateway is not None and network.model.gateway != address:
        detail = f"The gateway is {network.model.gateway}, but '{router}' has the address {address} there."
        found.add(BAD_ROUTER, detail, network.place("gateway"))
