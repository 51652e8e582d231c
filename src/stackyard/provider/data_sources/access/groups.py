"""`proxmox_virtual_environment_groups`: every group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.data_sources.access.values import SAME_PICTURE_S
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get("/access/groups", max_age_s=SAME_PICTURE_S)
    groups = sorted(listed, key=lambda group: str(group["groupid"]))
    return {
        **config,
        "id": "groups",
        "comments": [group.get("comment") or "" for group in groups],
        "group_ids": [group["groupid"] for group in groups],
    }


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_groups",), read=_read)
