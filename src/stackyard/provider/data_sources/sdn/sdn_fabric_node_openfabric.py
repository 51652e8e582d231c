"""`proxmox_sdn_fabric_node_openfabric`: a node of an OpenFabric fabric."""

from __future__ import annotations

from stackyard.provider.data_sources.sdn.reading import make_fabric_node_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_fabric_node_source("openfabric")
