"""The names that earlier versions gave resources, for states that still have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.names import DATA_FIELDS, address
from stackyard.render.references import (
    BRIDGE,
    CONTAINER,
    DOWNLOAD,
    FILE,
    HA_RESOURCE,
    HA_RULE,
    POOL,
    SUBNET,
    VLAN,
    VM,
    VNET,
    interface_label,
    subnet_label,
    zone_type,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stackyard.desired import Desired

__all__ = ["find_renamed"]


def find_renamed(desired: Desired, existing: Collection[str]) -> dict[str, str]:
    """Return the addresses in a state that an earlier version wrote, each with its present one.

    Args:
        desired: The model.
        existing: The addresses in the state.
    """
    return {
        old: new for old, new in _addresses(desired) if old != new and old in existing and new not in existing
    }


def _addresses(desired: Desired) -> Iterator[tuple[str, str]]:
    """Yield the earlier and the present address of every resource that the model may have."""
    data = (f"{vm.key}/{field}" for vm in desired.vms for field in DATA_FIELDS)
    keys = (
        *((VM, vm.key) for vm in desired.vms),
        *((CONTAINER, container.key) for container in desired.containers),
        *((HA_RESOURCE, guest.key) for guest in desired.guests),
        *((FILE, key) for key in data),
        *((kind, file.key) for file in desired.files for kind in (FILE, DOWNLOAD)),
        *((POOL, pool.name) for pool in desired.pools),
        *((HA_RULE, affinity.name) for affinity in desired.affinities),
        *((zone_type(zone), zone.name) for zone in desired.zones),
        *((VNET, vnet.name) for vnet in desired.vnets),
    )
    yield from ((_address(kind, key), address(kind, key)) for kind, key in keys)
    for kind, interfaces in ((BRIDGE, desired.bridges), (VLAN, desired.vlans)):
        for one in interfaces:
            yield _address(kind, f"{one.node}/{one.name}"), f"{kind}.{interface_label(one)}"
    for subnet in desired.subnets:
        yield _address(SUBNET, f"{subnet.vnet}/{subnet.cidr}"), f"{SUBNET}.{subnet_label(subnet)}"


def _address(kind: str, key: str) -> str:
    """Return the earlier address of a resource: characters that no name may have were `_xHH_`."""
    escaped = key.replace("_x", "_x5f_x")
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else f"_x{ord(c):x}_" for c in escaped)
    return f"{kind}.{name if name[:1].isalpha() else f'_{name}'}"
