"""`proxmox_hardware_mapping_pci`: PCI devices of each node under one name."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.resources.hardware_mapping.mappings import DEVICE_RULES, is_device, make_mapping
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

_PATH = matches(
    r"[a-f0-9]{4,}:[a-f0-9]{2}:[a-f0-9]{2}(\.[a-f0-9])?", "be where the device is, such as 0000:01:00.0"
)

RESOURCE = make_mapping(
    "pci",
    {
        **DEVICE_RULES,
        "map.path": Rule(check=_PATH),
        "map.subsystem_id": Rule(check=is_device),
        "mediated_devices": Rule(default=False),
    },
)
