"""`proxmox_hardware_mapping_dir`: a directory of each node under one name."""

from __future__ import annotations

from stackyard.provider.checks import matches
from stackyard.provider.resources.hardware_mapping.mappings import make_mapping
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = make_mapping("dir", {"map.path": Rule(check=matches(r"/.+", "be the whole path of a directory"))})
