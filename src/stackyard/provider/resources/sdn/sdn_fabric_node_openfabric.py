"""`proxmox_sdn_fabric_node_openfabric`: a node of an OpenFabric fabric."""

from __future__ import annotations

from stackyard.provider.resources.sdn.fabrics import make_fabric_node

__all__ = ["RESOURCE"]

RESOURCE = make_fabric_node("openfabric")
