"""`proxmox_virtual_environment_container`: one container."""

from __future__ import annotations

from stackyard.provider.data_sources.guests.lists import find_guest

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = find_guest("lxc", "container")
