"""Saved plans: in a file, or in the store of the site (`store:`), where other machines find them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT
from stackyard.path.planfile import PlanFile, PlanFileError
from stackyard.state import layout
from stackyard.state.names import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stackyard.clients.objects import Objects
    from stackyard.path.planfile import PlanKey
    from stackyard.path.target import Target
    from stackyard.state import StateService

__all__ = [
    "IN_STORE",
    "PlanUnknownError",
    "PlanningRun",
    "StoredPlan",
    "find_plan",
    "list_plans",
    "open_plan",
    "read_plan",
    "save_plan",
]

# What a saved plan is called by that is in the store.
IN_STORE = "store:"
_PREFIX = "plans/"
# No one applies an older one: its state has gone on.
_KEPT_S = 30 * 86_400.0


class _HasTarget(Protocol):
    @property
    def target(self) -> Target: ...


class PlanningRun(Protocol):
    """What saves and opens plans: the run of any source."""

    @property
    def resolved(self) -> _HasTarget:
        """What is planned."""
        ...

    @property
    def states(self) -> StateService:
        """The states."""
        ...

    @property
    def keys(self) -> tuple[PlanKey, ...]:
        """The keys of saved plans; the first encrypts."""
        ...


class PlanUnknownError(InvalidInputError):
    """There is no saved plan of that name in the store."""

    code = "E-PLAN-UNKNOWN"
    summary = "There is no such saved plan"
    default_remedy = "`stackyard plans list` shows the saved plans."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A saved plan in the store.

    Attributes:
        id: What it is called by.
        state: The state that it is for.
        key: Its object.
        saved_at: When it was saved, in seconds since 1970 by the clock of the store.
        size: How many bytes it has.
    """

    id: str
    state: str
    key: str
    saved_at: float
    size: int


def save_plan(run: PlanningRun, saved: PlanFile, out: str) -> str:
    """Save a plan, and return what it is found by.

    Args:
        run: The target.
        saved: The plan.
        out: A file; or `store:` for the store of the site.

    Raises:
        FileError: It cannot be written.
        StoreError: It cannot be stored.
    """
    if not out.startswith(IN_STORE):
        saved.save(Path(out), run.keys[0])
        return out
    which = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.urandom(3).hex()}"
    key = layout.plan(run.resolved.target.state_name, which)
    run.states.objects.put(key, saved.encode(run.keys[0]), expect=ABSENT)
    _forget_old(run.states.objects, layout.plans(run.resolved.target.state_name), key)
    return f"{IN_STORE}{which}"


def _forget_old(objects: Objects, prefix: str, newest: str) -> None:
    """Remove plans of a state that were saved long before the newest, by the clock of the store."""
    listed = objects.list(prefix)
    now = max((one.modified_at for one in listed if one.key == newest), default=0.0)
    for one in listed:
        if one.modified_at < now - _KEPT_S:
            objects.delete(one.key)


def open_plan(run: PlanningRun, named: str) -> PlanFile:
    """Open a saved plan of a target.

    Args:
        run: The target.
        named: A file; or `store:ID`.

    Raises:
        PlanUnknownError: The store has no such plan of this target.
        PlanFileError: It is no plan of this site.
        FileError: It cannot be read.
        StoreError: The store cannot be read.
    """
    if not named.startswith(IN_STORE):
        return PlanFile.load(Path(named), run.keys)
    found = find_plan(run.states.objects, named)
    state = run.resolved.target.state_name
    if found.state != state:
        raise PlanFileError(f"{named} is a plan for the state {found.state}, not for {state}.")
    return read_plan(run.states.objects, found, run.keys)


def read_plan(objects: Objects, plan: StoredPlan, keys: Sequence[PlanKey]) -> PlanFile:
    """Open a saved plan of the store.

    Raises:
        PlanUnknownError: It was discarded meanwhile.
        PlanFileError: It is no plan of this site.
        StoreError: The store cannot be read.
    """
    stored = objects.get(plan.key)
    if stored is None:
        raise PlanUnknownError(f"The plan {plan.id} was discarded.")
    return PlanFile.decode(stored.data, keys, f"{IN_STORE}{plan.id}")


def list_plans(objects: Objects) -> Iterator[StoredPlan]:
    """Yield the saved plans of a store, those of one state in the order in which they were saved.

    Raises:
        StoreError: The store cannot be read.
    """
    after = ""
    while listed := objects.list(_PREFIX, after=after):
        for one in listed:
            state, _, which = one.key.removeprefix(_PREFIX).partition("/")
            yield StoredPlan(
                id=which, state=name_of(state), key=one.key, saved_at=one.modified_at, size=one.size
            )
        after = listed[-1].key


def find_plan(objects: Objects, named: str) -> StoredPlan:
    """Return the saved plan of a name.

    Args:
        objects: The store.
        named: Its id, or how it begins where that is enough; with or without `store:`.

    Raises:
        PlanUnknownError: There is none, or more than one.
        StoreError: The store cannot be read.
    """
    which = named.removeprefix(IN_STORE)
    found = [one for one in list_plans(objects) if one.id.startswith(which)] if which else []
    exact = [one for one in found if one.id == which] or found
    if len(exact) == 1:
        return exact[0]
    if exact:
        raise PlanUnknownError(
            f"More than one plan id starts with `{which}`: {', '.join(one.id for one in exact)}."
        )
    raise PlanUnknownError(f"The store has no saved plan `{which}`.")
