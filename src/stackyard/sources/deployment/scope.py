"""What the object says once for all guests, and what holds where it is silent."""

from __future__ import annotations

import functools
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BUILT_IN_VLANS", "DEFAULT_ENVIRONMENT", "DEFAULT_TEMPLATE", "Scope"]

DEFAULT_ENVIRONMENT = "homelab"
DEFAULT_DATASTORE = "local-zfs"
DEFAULT_FILES = "local"
DEFAULT_BRIDGE = "vmbr0"
# Fetched by the node itself, once.
DEFAULT_TEMPLATE = "http://download.proxmox.com/images/system/debian-13-standard_13.1-2_amd64.tar.zst"

BUILT_IN_VLANS: Mapping[str, int] = {
    "lan_main": 1,
    "dns": 2,
    "mgmt": 5,
    "bmc": 8,
    "compute": 10,
    "pipeline": 25,
    "data": 30,
    "siem": 40,
    "ai": 50,
    "apps": 60,
    "media_svc": 70,
    "homeauto": 80,
    "nonprod": 90,
}


@dataclass(frozen=True)
class Scope:
    """The object apart from its guests.

    Attributes:
        data: The object without comments; its shape is valid.
    """

    data: Mapping[str, Any]

    def get_map(self, key: str) -> Mapping[str, Any]:
        """Return a map of the object, empty where there is none."""
        return self.data.get(key) or {}

    def word(self, key: str, default: str) -> str:
        """Return a word of the object, or what holds without."""
        return self.data.get(key) or default

    @property
    def node(self) -> str:
        """The primary node."""
        return str(self.data["proxmox_node"])

    @functools.cached_property
    def environment(self) -> str:
        """Which environment it is."""
        return self.word("environment", DEFAULT_ENVIRONMENT)

    @functools.cached_property
    def nodes(self) -> Mapping[str, Any]:
        """The nodes."""
        return self.get_map("nodes")

    @functools.cached_property
    def networks(self) -> Mapping[str, ipaddress.IPv4Network | None]:
        """The network of each VLAN; None where what is written is none."""
        return {name: _network(text) for name, text in self.get_map("network_cidrs").items()}

    @functools.cached_property
    def vlans(self) -> Mapping[str, int]:
        """The tag of each VLAN that has one."""
        return {**BUILT_IN_VLANS, **self.get_map("vlan_ids")}

    @functools.cached_property
    def has_networks(self) -> bool:
        """Whether addresses can be derived."""
        return bool(self.get_map("network_cidrs"))

    def domain_of(self, vlan: str) -> str | None:
        """Return the DNS domain of a VLAN."""
        return self.get_map("network_domains").get(vlan) or self.data.get("domain") or None

    def gateway_of(self, vlan: str) -> str | None:
        """Return the gateway of a VLAN: the first host of its network."""
        network = self.networks.get(vlan)
        return None if network is None or network.num_addresses < 4 else str(network[1])


def _network(text: str) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None
