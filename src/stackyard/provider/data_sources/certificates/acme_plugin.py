"""`proxmox_acme_plugin`: one plugin that answers challenges of certificate authorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.data_sources.certificates.plugin_values import SAME_PICTURE_S, plugin_values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.certificates.plugins import PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    found = await work.client.get(f"{PATH}/{proxmox.quote(config['plugin'])}", max_age_s=SAME_PICTURE_S)
    return {**config, **plugin_values(found)}


DATA_SOURCE = DataSource(names=both_names("acme_plugin"), read=_read)
