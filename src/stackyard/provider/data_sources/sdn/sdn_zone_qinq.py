"""`proxmox_sdn_zone_qinq`: a zone of VLANs inside of one VLAN of a bridge."""

from __future__ import annotations

from stackyard.provider.data_sources.sdn.reading import make_zone_source

__all__ = ["DATA_SOURCE"]

DATA_SOURCE = make_zone_source("qinq")
