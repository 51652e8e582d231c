"""`proxmox_metrics_server`: a server that nodes send their metrics to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.metrics.metrics_server import PATH, SERVER_FIELDS, unsaid_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

# Anyone who asks twice within one plan gets the same picture.
_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    name = config["name"]
    found = await work.client.get(f"{PATH}/{proxmox.quote(name)}", max_age_s=_SAME_PICTURE_S)
    return {**config, "id": name, **values(SERVER_FIELDS, found), **unsaid_values(found)}


DATA_SOURCE = DataSource(names=both_names("metrics_server"), read=_read)
