"""From a guest, or its label as a resource, to the place in the user's input that says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.names import address, label
from stackyard.render.objects import address_of_object
from stackyard.render.references import POOL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stackyard.base.errors import Location
    from stackyard.desired import Desired

    Key = str | int
    # From the key of a guest and a field of the model to the place in the user's file.
    Locate = Callable[[str, Sequence[Key]], Location | None]

__all__ = ["POOL_KEY", "by_label", "nowhere"]

# How the key of a pool begins, among those of guests.
POOL_KEY = "pool/"


def nowhere(key: str, field: Sequence[Key] = ()) -> Location | None:
    """Return no place: the input has none that is known."""
    del key, field
    return None


def by_label(locate: Locate, desired: Desired) -> Callable[[str, tuple[Key, ...]], Location | None]:
    """Return the same for the labels that guests and files have as resources of the engine.

    Pools are known by their addresses. What is to be removed is no longer in the model, and is looked for by
    its label.
    """
    keys = {label(thing.key): thing.key for thing in (*desired.files, *desired.guests)}
    keys |= {address(POOL, pool.name): f"{POOL_KEY}{pool.name}" for pool in desired.pools}
    keys |= {address_of_object(one.key): address_of_object(one.key) for one in desired.objects}

    def locate_label(name: str, field: tuple[Key, ...] = ()) -> Location | None:
        return locate(keys.get(name, name), field)

    return locate_label
