"""`proxmox_virtual_environment_hosts`: the hosts file of a node."""

from __future__ import annotations

from stackyard.provider.resources.node_settings.hosts import HOSTS

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = HOSTS.data_source()
