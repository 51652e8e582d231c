"""`proxmox_hardware_mapping_usb`: USB devices of each node under one name."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.resources.hardware_mapping.mappings import DEVICE_RULES, make_mapping
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

_PATH = matches(r"\d+-\d+(\.\d+)*", "be the bus and the port of the device, such as 1-2")

RESOURCE = make_mapping("usb", {**DEVICE_RULES, "map.path": Rule(check=_PATH)})
