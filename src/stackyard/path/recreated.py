"""Guests that a plan creates again, or creates in any case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError
from stackyard.engine.changes import Action
from stackyard.guard.subjects import is_guest, name_of
from stackyard.path.first_boot_data import OTHER_IMAGE
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from stackyard.desired import Desired
    from stackyard.engine.changes import Changes
    from stackyard.guard import Verdict

__all__ = ["list_created_anyway", "list_replaced"]


def list_replaced(desired: Desired, names: frozenset[str]) -> tuple[str, ...]:
    """Return the addresses of guests that are to be created again.

    Raises:
        UsageError: A name is no guest of the target.
    """
    guests = {guest.name: address_of(guest) for guest in desired.guests}
    unknown = sorted(names - guests.keys())
    if unknown:
        has = ", ".join(sorted(guests)) or "none"
        raise UsageError(f"There is no guest {', '.join(unknown)} to create again; the input has {has}.")
    return tuple(guests[name] for name in sorted(names))


def list_created_anyway(changes: Changes, verdict: Verdict, recreate: frozenset[str]) -> frozenset[str]:
    """Return the guests that keep their image in the plan, and are created by it."""
    kept = {one.subject for one in verdict.warnings if one.kind is OTHER_IMAGE}
    new = {
        name_of(change)
        for change in changes.planned
        if is_guest(change) and change.action in (Action.CREATE, Action.REPLACE)
    }
    return frozenset(kept & new) - recreate
