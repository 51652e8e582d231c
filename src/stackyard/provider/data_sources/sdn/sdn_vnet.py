"""`proxmox_sdn_vnet`: a network of a zone, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.sdn.reading import SAME_PICTURE_S
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.sdn.sdn_vnet import VNET_FIELDS, VNETS

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    found = await work.client.get(f"{VNETS}/{proxmox.quote(config['id'])}", max_age_s=SAME_PICTURE_S)
    return {**config, **values(VNET_FIELDS, found)}


DATA_SOURCE = DataSource(names=both_names("sdn_vnet"), read=_read)
