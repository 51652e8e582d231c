"""`proxmox_virtual_environment_role`: one role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.access.values import SAME_PICTURE_S
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    name = config["role_id"]
    found = await work.client.get(f"/access/roles/{proxmox.quote(name)}", max_age_s=SAME_PICTURE_S)
    return {**config, "id": name, "privileges": sorted(name for name, has in found.items() if int(has))}


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_role",), read=_read)
