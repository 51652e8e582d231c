"""`proxmox_acme_accounts`: every account at a certificate authority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.certificates.acme_account import PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=_SAME_PICTURE_S)
    return {**config, "accounts": sorted(str(row["name"]) for row in listed)}


DATA_SOURCE = DataSource(names=both_names("acme_accounts"), read=_read)
