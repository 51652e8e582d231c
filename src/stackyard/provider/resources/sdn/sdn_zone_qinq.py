"""`proxmox_sdn_zone_qinq`: a zone of VLANs inside of one VLAN of a bridge."""

from __future__ import annotations

from stackyard.provider.checks import between, one_of
from stackyard.provider.resources.sdn.zones import make_zone
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = make_zone(
    "qinq",
    rules={
        "service_vlan": Rule(check=between(1, 4094)),
        "service_vlan_protocol": Rule(default="802.1q", check=one_of("802.1ad", "802.1q")),
    },
)
