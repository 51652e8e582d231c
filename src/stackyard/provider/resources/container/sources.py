"""What a container has already, where the configuration leaves it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.container.blocks import block, has, is_clone
from stackyard.provider.resources.container.networks import interfaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["with_interfaces"]


def with_interfaces(values: Object, config: Mapping[str, Any]) -> Object:
    """Return values with the MAC addresses of the interfaces that are there.

    A clone that says nothing of interfaces, but has addresses for them, has those of its source.
    """
    there = interfaces(config, {})
    if is_clone(values) and not has(values, "network_interface"):
        needs = has(block(values, "initialization"), "ip_config")
        return {**values, "network_interface": there} if needs else values
    known = {one["name"]: one["mac_address"] for one in there}
    written = [
        {**one, "mac_address": one.get("mac_address") or known.get(one.get("name"))}
        for one in values.get("network_interface") or ()
    ]
    return {**values, "network_interface": written}
