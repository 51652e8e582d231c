"""`proxmox_sdn_zone_vxlan`: a zone of VXLAN tunnels between nodes."""

from __future__ import annotations

from stackyard.provider.resources.sdn.zones import make_zone

__all__ = ["RESOURCE"]

RESOURCE = make_zone("vxlan")
