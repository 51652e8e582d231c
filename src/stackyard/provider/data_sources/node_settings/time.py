"""`proxmox_virtual_environment_time`: the time and the time zone of a node."""

from __future__ import annotations

from stackyard.provider.resources.node_settings.time import TIME

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = TIME.data_source()
