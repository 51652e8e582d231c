"""`proxmox_version`: the version of Proxmox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource, both_names

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read_version(work: Work, config: Object) -> Object:
    found = await work.client.get("/version", max_age_s=_SAME_PICTURE_S)
    return {
        **config,
        "id": "version",
        "release": found.get("release"),
        "repository_id": found.get("repoid"),
        "version": found.get("version"),
    }


DATA_SOURCE = DataSource(names=both_names("version"), read=_read_version)
