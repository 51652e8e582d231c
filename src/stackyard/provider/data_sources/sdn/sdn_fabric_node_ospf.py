"""`proxmox_sdn_fabric_node_ospf`: a node of an OSPF fabric."""

from __future__ import annotations

from stackyard.provider.data_sources.sdn.reading import make_fabric_node_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_fabric_node_source("ospf")
