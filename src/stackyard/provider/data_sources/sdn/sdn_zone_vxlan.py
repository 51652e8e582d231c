"""`proxmox_sdn_zone_vxlan`: a zone of VXLAN tunnels between nodes."""

from __future__ import annotations

from stackyard.provider.data_sources.sdn.reading import make_zone_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_zone_source("vxlan")
