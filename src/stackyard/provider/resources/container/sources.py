"""What a clone has of its source, where the configuration leaves it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.resources.container.blocks import block, has, is_clone
from stackyard.provider.resources.container.networks import interfaces

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["with_interfaces"]


def with_interfaces(values: Object, config: Mapping[str, Any]) -> Object:
    """Return the values of a clone with the interfaces of its source, where addresses are for them."""
    needs = is_clone(values) and has(block(values, "initialization"), "ip_config")
    if not needs or has(values, "network_interface"):
        return values
    return {**values, "network_interface": interfaces(config, {})}
