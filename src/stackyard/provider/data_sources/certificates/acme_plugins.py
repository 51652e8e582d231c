"""`proxmox_acme_plugins`: every plugin that answers challenges of certificate authorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.data_sources.certificates.plugin_values import SAME_PICTURE_S, plugin_values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.certificates.plugins import PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=SAME_PICTURE_S)
    rows = sorted(listed, key=lambda row: str(row["plugin"]))
    return {**config, "plugins": [plugin_values(row) for row in rows]}


DATA_SOURCE = DataSource(names=both_names("acme_plugins"), read=_read)
