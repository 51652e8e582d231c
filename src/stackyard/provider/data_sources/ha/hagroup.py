"""`proxmox_hagroup`: one HA group, in a cluster that still has groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.ha.hagroup import GROUP_FIELDS, PATH, group_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    name = config["group"]
    found = await work.client.get(f"{PATH}/{proxmox.quote(name)}", max_age_s=_SAME_PICTURE_S)
    return {**config, "id": name, **values(GROUP_FIELDS, found), **group_values(found)}


DATA_SOURCE = DataSource(names=both_names("hagroup"), read=_read)
