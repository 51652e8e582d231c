"""`proxmox_apt_standard_repository`: a package repository of Proxmox on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.node_settings.repositories import find_repositories, standard_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    return {**config, **standard_values(config, await find_repositories(work, config))}


DATA_SOURCE = DataSource(names=both_names("apt_standard_repository"), read=_read)
