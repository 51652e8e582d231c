"""`proxmox_virtual_environment_group`: a group of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import TEXT, Field
from stackyard.provider.resources.access.entries import with_entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["RESOURCE"]


def _members(known: Object, row: Mapping[str, Any]) -> Object:
    # The list has the members as one text, a group alone has them as a list.
    members = row["members"] if "members" in row else str(row.get("users") or "").split(",")
    return {"members": sorted(name for name in members if name)}


_GROUP = Collection(
    path="/access/groups",
    key="groupid",
    attribute="group_id",
    fields=(Field(attribute="comment", form=TEXT, blank=True),),
    own_state=_members,
    filtered=True,
).resource(("proxmox_virtual_environment_group",), rules={})

RESOURCE = with_entries(_GROUP, "group", "group_id")
