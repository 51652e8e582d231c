"""Network devices of a container."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError
from pvelab.world import bridges
from pvelab.world.generate import DEFAULT_MAC_PREFIX, mac_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["check_network", "complete_network", "is_network", "parse_network"]

_DECLARED_AT = "POST /nodes/{node}/lxc"
_DEFAULT_MTU = 1500
_NOTHING: Mapping[str, Any] = {}


def is_network(key: str) -> bool:
    """Return whether an option is a network device."""
    return re.fullmatch(r"net\d+", key) is not None


def parse_network(world: World, text: str) -> dict[str, Any]:
    """Read a network device: `name`, `bridge`, `hwaddr`, `ip` and the rest.

    Raises:
        PveError: The text cannot be read.
    """
    try:
        return properties.parse(_schema(world), text)
    except FormatError as err:
        raise PveError(str(err)) from err


def complete_network(
    world: World, text: str, *, new_address: bool = False, changes: Mapping[str, Any] = _NOTHING
) -> str:
    """Return a network device as Proxmox prints it, with an address of its own where none was given.

    Args:
        world: The lab.
        text: The device.
        new_address: Whether it gets another address in any case, as in a clone.
        changes: Single properties in place of those in the text.
    """
    network = {**parse_network(world, text), **changes, "type": "veth"}
    if new_address or not network.get("hwaddr"):
        options = world.store.get("cluster", "options") or {}
        network["hwaddr"] = mac_address(options.get("mac_prefix", DEFAULT_MAC_PREFIX))
    return properties.render(_schema(world), network)


def check_network(world: World, node: str, key: str, network: Mapping[str, Any]) -> None:
    """Refuse what the bridge or the host cannot do.

    Raises:
        PveError: The MTU is too large, or the host is to do what only the guest can.
    """
    if network.get("mtu"):
        bridge = bridges.links_up(world.store, node).get(str(network.get("bridge")), {})
        largest = int(bridge.get("mtu") or _DEFAULT_MTU)
        if int(network["mtu"]) > largest:
            text = f"{key}: MTU size '{network['mtu']}' is bigger than bridge MTU '{largest}'"
            raise PveError(text)
    if not network.get("link_down") and network.get("host-managed") and network.get("ip6") == "auto":
        raise PveError(f"{key}: SLAAC is not supported for host-managed network configuration.")


def _schema(world: World) -> properties.PropertySchema:
    found: properties.PropertySchema = world.facts.schema(_DECLARED_AT, "net[n]")["format"]
    return found
