"""`proxmox_sdn_controller_evpn`: the routing that EVPN zones need, as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.sdn.reading import SAME_PICTURE_S, unsaid
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource
from stackyard.provider.resources.sdn.pending import check_type
from stackyard.provider.resources.sdn.sdn_controller_evpn import CONTROLLER_FIELDS, CONTROLLERS

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    path = f"{CONTROLLERS}/{proxmox.quote(config['id'])}"
    found = await work.client.get(path, max_age_s=SAME_PICTURE_S)
    check_type(f"The controller {config['id']}", found, "type", "evpn")
    read = {name: value for name, value in values(CONTROLLER_FIELDS, found).items() if value is not None}
    return {**config, "digest": found.get("digest") or "", **unsaid(CONTROLLER_FIELDS), **read}


DATA_SOURCE = DataSource(names=("proxmox_sdn_controller_evpn",), read=_read)
