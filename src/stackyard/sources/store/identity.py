"""Whose store it is: one object that names the site's keys, and the store that took its place.

Two sites that are set to one store would plan on each other's states. The first to use a store leaves the ids
of its keys there; who has none of these keys is another site, or lacks the key. The ids reveal nothing of the
keys.
"""

from __future__ import annotations

import dataclasses
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.clients.objects import Objects

__all__ = ["IDENTITY", "StoreIdentity", "StoreMovedError", "change_identity", "read_identity"]

IDENTITY = "system/site"
_FORMAT = 1
_ATTEMPTS = 8


class StoreMovedError(InvalidInputError):
    """Everything in this store was moved to another one."""

    code = "E-STORE-MOVED"
    summary = "The store was moved"
    default_remedy = "Set the new address: `store` in site.yaml or stackyard.yaml, or STACKYARD_STORE."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreIdentity:
    """Whose store it is.

    Attributes:
        id: What tells it from every other store, by whichever address it is reached.
        keys: The ids of the site's keys, the newest first.
        created_at: When the site began to use it, in seconds since 1970.
        moved_to: The store that took its place; empty while it is in use.
        moving_to: The store that it is being moved to; no run begins meanwhile.
        moved_from: The id of the store that everything in it is from, or is being copied from.
        move_id: The attempt that moves it: one that was given up, or overtaken by another, may not end it.
    """

    id: str = ""
    keys: tuple[str, ...] = ()
    created_at: float = 0.0
    moved_to: str = ""
    moving_to: str = ""
    moved_from: str = ""
    move_id: str = ""

    def require_not_left(self) -> None:
        """Refuse a store that was moved.

        Raises:
            StoreMovedError: It was.
        """
        if self.moved_to:
            raise StoreMovedError(f"This store was moved to {self.moved_to}.")

    def require_here(self) -> None:
        """Refuse a store that was moved, or is being moved.

        Raises:
            StoreMovedError: It was.
        """
        self.require_not_left()
        if self.moving_to:
            raise StoreMovedError(
                f"This store is being moved to {self.moving_to}.",
                remedy="Wait until `stackyard store move` has ended. If it was killed, run it again.",
            )


def read_identity(objects: Objects) -> StoreIdentity | None:
    """Return whose store it is; None while no site has used it.

    Raises:
        StoreError: The store cannot be read, or what it holds is damaged.
    """
    stored = objects.get(IDENTITY)
    return None if stored is None else _load(stored.data)


def change_identity(
    objects: Objects, decide: Callable[[StoreIdentity], StoreIdentity], *, now: float | None = None
) -> StoreIdentity:
    """Replace what is said of a store, no matter who else writes at the same time.

    Args:
        objects: The store.
        decide: Returns what is to be said, from what is said.
        now: The time, in seconds since 1970.

    Raises:
        StoreError: It cannot be stored.
        ConflictError: Others kept writing it.
    """
    for _ in range(_ATTEMPTS):
        stored = objects.get(IDENTITY)
        fresh = StoreIdentity(id=uuid.uuid4().hex, created_at=time.time() if now is None else now)
        before = fresh if stored is None else _load(stored.data)
        new = decide(before)
        if stored is not None and new == before:
            return new
        data = orjson.dumps({"format": _FORMAT, **dataclasses.asdict(new)}, option=orjson.OPT_SORT_KEYS)
        try:
            objects.put(IDENTITY, data, expect=ABSENT if stored is None else stored.tag)
        except ConflictError:
            continue
        return new
    raise ConflictError(IDENTITY)


def _load(data: bytes) -> StoreIdentity:
    try:
        document: dict[str, Any] = parse_json(data, SMALL)
        if document["format"] > _FORMAT:
            raise StoreDamagedError(
                "The store was set up by a newer stackyard.", remedy="Update stackyard on this machine."
            )
        known = {item.name for item in dataclasses.fields(StoreIdentity)}
        found = {name: value for name, value in document.items() if name in known}
        return StoreIdentity(**{**found, "keys": tuple(found.get("keys", ()))})
    except (JsonError, KeyError, TypeError, AttributeError) as err:
        raise StoreDamagedError(f"The object {IDENTITY} is damaged.") from err
