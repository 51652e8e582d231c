"""`proxmox_sdn_zone_vxlan`: a zone of VXLAN tunnels between nodes."""

from __future__ import annotations

from stackyard.provider.fields import COMMA_SET, Field
from stackyard.provider.resources.sdn.zones import make_zone

__all__ = ["RESOURCE"]

RESOURCE = make_zone("vxlan", Field(attribute="peers", form=COMMA_SET, clears=False))
