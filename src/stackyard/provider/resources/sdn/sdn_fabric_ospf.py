"""`proxmox_sdn_fabric_ospf`: nodes that route to each other with OSPF."""

from __future__ import annotations

from stackyard.provider.resources.sdn.fabrics import make_fabric

__all__ = ["RESOURCE"]

RESOURCE = make_fabric("ospf")
