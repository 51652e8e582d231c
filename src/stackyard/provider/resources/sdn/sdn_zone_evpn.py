"""`proxmox_sdn_zone_evpn`: a routed zone across nodes and clusters, with a controller."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.resources.sdn.zones import make_zone
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = make_zone(
    "evpn", rules={"rt_import": Rule(check=matches(r"\d+:\d+", "be ASN:NUMBER, such as 65000:100"))}
)
