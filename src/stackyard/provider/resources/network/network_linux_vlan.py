"""`proxmox_network_linux_vlan`: a VLAN on an interface of a node."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.fields import NUMBER, TRIMMED, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.resources.network.interfaces import (
    SHARED_RULES,
    identify,
    interfaces,
    state_of_interface,
)
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = interfaces(
    "vlan",
    (
        Field(attribute="interface", key="vlan-raw-device", form=TRIMMED, clears=False),
        Field(attribute="vlan", key="vlan-id", form=NUMBER, clears=False),
    ),
    state_of_interface,
).resource(
    both_names("network_linux_vlan"),
    identify=identify,
    rules={
        **SHARED_RULES,
        "name": Rule(replace=True, check=matches(".{3,}", "have at least 3 characters")),
        "interface": Rule(keep=True),
        "vlan": Rule(keep=True),
    },
)
