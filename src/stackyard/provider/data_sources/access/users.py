"""`proxmox_virtual_environment_users`: every user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.data_sources.access.values import SAME_PICTURE_S, user_values
from stackyard.provider.kinds import DataSource

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_COLUMNS = {
    "comments": "comment",
    "emails": "email",
    "enabled": "enabled",
    "expiration_dates": "expiration_date",
    "first_names": "first_name",
    "groups": "groups",
    "keys": "keys",
    "last_names": "last_name",
}


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get("/access/users", max_age_s=SAME_PICTURE_S)
    users = sorted(listed, key=lambda user: str(user["userid"]))
    read = [user_values(user) for user in users]
    columns = {column: [user[name] for user in read] for column, name in _COLUMNS.items()}
    return {**config, "id": "users", "user_ids": [user["userid"] for user in users], **columns}


DATA_SOURCE = DataSource(names=("proxmox_virtual_environment_users",), read=_read)
