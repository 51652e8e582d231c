"""`proxmox_virtual_environment_pools`: every pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_pools(work: Work, config: Object) -> Object:
    pools = await work.client.get("/pools", max_age_s=_SAME_PICTURE_S)
    return {**config, "id": "pools", "pool_ids": [str(pool["poolid"]) for pool in pools]}


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_pools",), read=_read_pools)
