"""`proxmox_haresources`: every guest that the manager of the cluster keeps running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.checks import one_of
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    kind = config.get("type")
    listed = await work.client.get("/cluster/ha/resources", {"type": kind}, max_age_s=_SAME_PICTURE_S)
    return {
        **config,
        "id": "haresources" if kind is None else f"haresources:{kind}",
        "resource_ids": sorted(str(row["sid"]) for row in listed),
    }


DATA_SOURCE = DataSource(
    names=both_names("haresources"), read=_read, rules={"type": Rule(check=one_of("vm", "ct"))}
)
