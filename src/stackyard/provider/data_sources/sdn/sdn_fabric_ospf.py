"""`proxmox_sdn_fabric_ospf`: nodes that route to each other with OSPF."""

from __future__ import annotations

from stackyard.provider.data_sources.sdn.reading import make_fabric_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_fabric_source("ospf")
