"""`proxmox_hardware_mapping_dir`: a directory of each node under one name."""

from __future__ import annotations

from stackyard.provider.data_sources.hardware_mapping.reading import make_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_source("dir")
