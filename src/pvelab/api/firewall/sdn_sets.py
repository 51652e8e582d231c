"""The IP sets that each virtual network brings along, for rules to refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.api.cluster.sdn.applied import read_applied
from pvelab.api.firewall.config import FirewallConfig

if TYPE_CHECKING:
    from pvelab.server.call import Call

__all__ = ["all_sets", "visible_sets"]

_SETS = ("all", "gateway", "no-gateway", "dhcp")


def all_sets(call: Call) -> FirewallConfig:
    """Return the sets of all virtual networks in force, without their addresses."""
    return _sets(list(read_applied(call.store, "vnets")))


def visible_sets(call: Call) -> FirewallConfig:
    """Return the sets of the virtual networks that the caller may see."""
    return _sets(
        [
            name
            for name, vnet in read_applied(call.store, "vnets").items()
            if call.may(f"/sdn/zones/{vnet['zone']}/{name}", "SDN.Audit", "SDN.Allocate", any_of=True)
        ]
    )


def _sets(vnets: list[str]) -> FirewallConfig:
    return FirewallConfig(ipset={f"{vnet}-{name}": [] for vnet in vnets for name in _SETS})
