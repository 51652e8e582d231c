"""`proxmox_virtual_environment_pool`: one pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource
from stackyard.provider.resources.pool import pool_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_pool(work: Work, config: Object) -> Object:
    pool_id = config["pool_id"]
    (pool,) = await work.client.get("/pools", {"poolid": pool_id}, max_age_s=_SAME_PICTURE_S)
    return {**config, "id": pool_id, **pool_values(pool)}


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_pool",), read=_read_pool)
