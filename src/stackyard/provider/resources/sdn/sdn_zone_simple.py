"""`proxmox_sdn_zone_simple`: a zone of one node."""

from __future__ import annotations

from stackyard.provider.checks import one_of
from stackyard.provider.resources.sdn.zones import make_zone
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = make_zone("simple", rules={"dhcp": Rule(check=one_of("dnsmasq"))})
