"""`proxmox_virtual_environment_group`: one group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.access.values import SAME_PICTURE_S, entries_of
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    name = config["group_id"]
    found = await work.client.get(f"/access/groups/{proxmox.quote(name)}", max_age_s=SAME_PICTURE_S)
    return {
        **config,
        "id": name,
        "acl": await entries_of(work, "group", name),
        "comment": found.get("comment") or "",
        "members": sorted(found.get("members") or ()),
    }


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_group",), read=_read)
