"""What the data sources of access have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import values
from stackyard.provider.resources.access.entries import find_entries
from stackyard.provider.resources.access.moments import read_moment
from stackyard.provider.resources.access.user import USER_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["SAME_PICTURE_S", "entries_of", "user_values"]

# Anyone who asks twice within one plan gets the same picture.
SAME_PICTURE_S = 1.0


async def entries_of(work: Work, kind: str, owner: str) -> list[Object]:
    """Return the entries of the access control list for a user or group."""
    return [
        {"path": entry.path, "propagate": propagate, "role_id": entry.role}
        for entry, propagate in (await find_entries(work)).items()
        if (entry.kind, entry.owner) == (kind, owner)
    ]


def user_values(found: Mapping[str, Any]) -> Object:
    """Return the attributes of a user, none of them null."""
    read = {name: "" if value is None else value for name, value in values(USER_FIELDS, found).items()}
    # A user is enabled and without an end unless Proxmox says otherwise.
    return {
        **read,
        "enabled": True if found.get("enable") is None else read["enabled"],
        "expiration_date": read_moment(found.get("expire")),
        "groups": read["groups"] or [],
    }
