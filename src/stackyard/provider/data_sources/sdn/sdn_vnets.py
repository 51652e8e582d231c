"""`proxmox_sdn_vnets`: every network of every zone, as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.data_sources.sdn.reading import SAME_PICTURE_S, unsaid
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.sdn.sdn_vnet import VNET_FIELDS, VNETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


def _vnet(row: Mapping[str, Any]) -> Object:
    set_ = {name: value for name, value in values(VNET_FIELDS, row).items() if value is not None}
    return {"id": row["vnet"], **unsaid(VNET_FIELDS), **set_}


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(VNETS, max_age_s=SAME_PICTURE_S)
    return {**config, "vnets": [_vnet(row) for row in listed]}


DATA_SOURCE = DataSource(names=both_names("sdn_vnets"), read=_read)
