"""`proxmox_virtual_environment_roles`: every role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.fields.properties import flag
from stackyard.provider.data_sources.access.values import SAME_PICTURE_S
from stackyard.provider.fields import COMMA_SET
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get("/access/roles", max_age_s=SAME_PICTURE_S)
    roles = sorted(listed, key=lambda role: str(role["roleid"]))
    return {
        **config,
        "id": "roles",
        "privileges": [COMMA_SET.read(role.get("privs") or "") for role in roles],
        "role_ids": [role["roleid"] for role in roles],
        "special": [flag(role.get("special")) for role in roles],
    }


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_roles",), read=_read)
