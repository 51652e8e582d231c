"""Network devices of a VM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params import properties
from pvelab.server.params.texts import FormatError
from pvelab.server.problems import PveError
from pvelab.world.generate import DEFAULT_MAC_PREFIX, mac_address

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["complete_network", "parse_network"]

_DECLARED_AT = "POST /nodes/{node}/qemu"


def parse_network(world: World, text: str) -> dict[str, Any]:
    """Read a network device: `model`, `macaddr`, `bridge` and the rest.

    Raises:
        PveError: The text cannot be read.
    """
    try:
        return properties.parse(_schema(world), text)
    except FormatError as err:
        raise PveError(f"unable to parse network options - {err}") from err


def complete_network(world: World, text: str, *, new_address: bool = False) -> str:
    """Return a network device as Proxmox prints it, with an address of its own where none was given.

    Args:
        world: The lab.
        text: The device.
        new_address: Whether it gets another address in any case, as in a clone.
    """
    network = parse_network(world, text)
    options = world.store.get("cluster", "options") or {}
    prefix = options.get("mac_prefix", DEFAULT_MAC_PREFIX)
    given = None if new_address else network.get("macaddr")
    network["macaddr"] = str(given or mac_address(prefix)).upper()
    return properties.render(_schema(world), network)


def _schema(world: World) -> properties.PropertySchema:
    found: properties.PropertySchema = world.facts.schema(_DECLARED_AT, "net[n]")["format"]
    return found
