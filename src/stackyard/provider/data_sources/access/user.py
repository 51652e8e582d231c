"""`proxmox_virtual_environment_user`: one user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.access.values import SAME_PICTURE_S, entries_of, user_values
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    name = config["user_id"]
    found = await work.client.get(f"/access/users/{proxmox.quote(name)}", max_age_s=SAME_PICTURE_S)
    return {**config, "id": name, "acl": await entries_of(work, "user", name), **user_values(found)}


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_user",), read=_read)
