"""`proxmox_sdn_zone_vlan`: a zone of VLANs on a bridge."""

from __future__ import annotations

from stackyard.provider.resources.sdn.zones import make_zone

__all__ = ["RESOURCE"]

RESOURCE = make_zone("vlan")
