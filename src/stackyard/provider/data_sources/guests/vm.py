"""`proxmox_virtual_environment_vm`: one VM."""

from __future__ import annotations

from stackyard.provider.data_sources.guests.lists import find_guest

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = find_guest("qemu", "vm")
