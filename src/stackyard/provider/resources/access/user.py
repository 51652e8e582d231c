"""`proxmox_virtual_environment_user`: who logs in."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.crud import Collection
from stackyard.provider.fields import COMMA_SET, FLAG, TEXT, Field, Form
from stackyard.provider.resources.access.entries import with_entries
from stackyard.provider.resources.access.moments import MOMENT, is_moment, keep_spelling, same_moment
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["RESOURCE", "USER_FIELDS"]


def _read_groups(groups: Any) -> list[str]:
    # The list of users has them as one text, a user alone has them as a list.
    listed: list[str] = sorted(groups) if isinstance(groups, list) else COMMA_SET.read(groups)
    return listed


USER_FIELDS = (
    Field(attribute="comment", form=TEXT, blank=True),
    Field(attribute="email", form=TEXT, blank=True),
    Field(attribute="enabled", key="enable", form=FLAG, clears=False),
    Field(attribute="expiration_date", key="expire", form=MOMENT, clears=False),
    Field(attribute="first_name", key="firstname", form=TEXT, blank=True),
    Field(attribute="groups", form=Form(write=COMMA_SET.write, read=_read_groups), blank=True),
    Field(attribute="keys", form=TEXT, blank=True),
    Field(attribute="last_name", key="lastname", form=TEXT, blank=True),
)


def _expiration(known: Object, row: Mapping[str, Any]) -> Object:
    read = {"expiration_date": MOMENT.read(row.get("expire"))}
    return {"expiration_date": keep_spelling(known, read, "expiration_date")}


_USERS = Collection(
    path="/access/users",
    key="userid",
    attribute="user_id",
    fields=(
        *USER_FIELDS,
        Field(attribute="password", form=TEXT, secret=True, create_only=True, clears=False),
    ),
    own_state=_expiration,
    query={"full": True},
    filtered=True,
)
_USER = _USERS.resource(
    ("proxmox_virtual_environment_user",),
    rules={"expiration_date": Rule(check=is_moment, same=same_moment)},
)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    changed = await _USERS.update(work, prior, planned)
    password = planned.get("password")
    if password and password != prior.get("password"):
        work.keep({**changed, "password": prior.get("password")})
        await work.client.put("/access/password", {"userid": planned["user_id"], "password": password})
    return changed


RESOURCE = with_entries(dataclasses.replace(_USER, update=_update), "user", "user_id")
