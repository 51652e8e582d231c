"""`proxmox_hagroups`: every HA group, in a cluster that still has groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.ha.hagroup import PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=_SAME_PICTURE_S)
    return {**config, "id": "hagroups", "group_ids": sorted(str(row["group"]) for row in listed)}


DATA_SOURCE = DataSource(names=both_names("hagroups"), read=_read)
