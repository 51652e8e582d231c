"""`proxmox_virtual_environment_dns`: the search domain and the name servers of a node."""

from __future__ import annotations

from stackyard.provider.resources.node_settings.dns import DNS

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = DNS.data_source()
