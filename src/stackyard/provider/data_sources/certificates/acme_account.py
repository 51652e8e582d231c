"""`proxmox_acme_account`: one account at a certificate authority."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.certificates.acme_account import PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0
_DEFAULT = "default"


async def _read(work: Work, config: Object) -> Object:
    name = config.get("name") or _DEFAULT
    found = await work.client.get(f"{PATH}/{proxmox.quote(name)}", max_age_s=_SAME_PICTURE_S)
    account = found.get("account") or {}
    return {
        **config,
        "account": {
            "contact": list(account.get("contact") or ()),
            "created_at": account.get("createdAt") or "",
            "status": account.get("status") or "",
        },
        **{key: found.get(key) or "" for key in ("directory", "location", "tos")},
    }


DATA_SOURCE = DataSource(names=both_names("acme_account"), read=_read)
