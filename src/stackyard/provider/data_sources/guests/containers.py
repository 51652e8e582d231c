"""`proxmox_virtual_environment_containers`: every container that matches."""

from __future__ import annotations

from stackyard.provider.data_sources.guests.lists import list_guests

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = list_guests("lxc", "containers")
