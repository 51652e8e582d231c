"""`proxmox_node_config`: the notes of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource
from stackyard.provider.resources.node_settings.node_config import config_path, read_notes

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    found = await work.client.get(config_path(config), max_age_s=_SAME_PICTURE_S)
    return {**config, "id": config["node_name"], "description": read_notes(found or {})}


DATA_SOURCE = DataSource(names=("proxmox_node_config",), read=_read)
