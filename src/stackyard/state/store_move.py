"""Taking everything from one store to another, with runs stopped once and only for the last part.

First everything is copied while runs go on. Then the old store is marked, so that no new run begins, its
states are frozen, and what runs is waited for; what changed since is copied, both are compared, and the old
store says from then on where everything is. Each part can be repeated: a move that was killed is run again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import BusyError, InvalidInputError
from stackyard.clients.objects import ANYTHING, StoreDamagedError, watch
from stackyard.sources.store.identity import IDENTITY, change_identity, read_identity
from stackyard.state import layout
from stackyard.state.refusals import StateRefusedError, UnknownStateError
from stackyard.state.runs import RunWatch
from stackyard.state.service import StateService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stackyard.clients.objects import Objects
    from stackyard.state.model import Actor

__all__ = ["MovedStore", "StoreInUseError", "StoreTakenError", "abort_move", "move_store"]

# What only a run that is at work needs, what is about one store alone, and what proves that it takes writes.
_LEFT = (layout.RUNS, "run-control/", "operator-locks/", layout.HEALTH, "system/checks/", "checks/", IDENTITY)
_LOOK_EVERY_S = 0.5
_REASON = "The store is moved to "


class StoreTakenError(InvalidInputError):
    """The store that everything is to be moved to holds something else."""

    code = "E-STORE-TAKEN"
    summary = "The store to move to is in use"
    default_remedy = "Name a store that is empty: another bucket, prefix or schema."


class StoreInUseError(BusyError):
    """Runs did not end in the time that was waited for them."""

    code = "E-STORE-IN-USE"
    summary = "Runs still use the store"
    default_remedy = (
        "Wait for them (`stackyard runs list --outcome running`), then run the same command again. No new run"
        " begins meanwhile; `stackyard store move --abort` undoes that."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedStore:
    """What a move did.

    Attributes:
        objects: How many objects there are.
        states: How many of them are states.
        stopped_s: How long no run could begin.
    """

    objects: int
    states: int
    stopped_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """Both ends of a move."""

    origin: Objects
    destination: Objects
    label: str
    actor: Actor
    note: Callable[[str], None]

    def copy(self, what: str) -> int:
        """Make the destination have what the origin has; return how many objects were written or removed."""
        there = {key for key in _keys(self.destination)}
        changed = 0
        for key in _keys(self.origin):
            there.discard(key)
            stored = self.origin.get(key)
            if stored is None:
                self.destination.delete(key)
                continue
            known = self.destination.get(key)
            if known is None or known.data != stored.data:
                self.destination.put(key, stored.data, expect=ANYTHING)
                changed += 1
        for key in there:
            # It was removed from the origin since it was copied.
            self.destination.delete(key)
        self.note(f"{what}: {changed} objects copied, {len(there)} removed.")
        return changed + len(there)

    def require_same(self) -> int:
        """Refuse when both do not hold the same; return how many objects they hold."""
        ours, theirs = list(_keys(self.origin)), list(_keys(self.destination))
        if sorted(ours) != sorted(theirs):
            raise StoreDamagedError("The two stores do not hold the same objects; nothing was switched.")
        for key in ours:
            one, other = self.origin.get(key), self.destination.get(key)
            if one is None or other is None or one.data != other.data:
                raise StoreDamagedError(f"{key} is not the same in both stores; nothing was switched.")
        return len(ours)


def move_store(
    origin: Objects,
    destination: Objects,
    label: str,
    *,
    actor: Actor,
    note: Callable[[str], None],
    wait_s: float,
) -> MovedStore:
    """Take everything from one store to another.

    Args:
        origin: The old store.
        destination: The new one: empty, or with what an earlier attempt at the same move left.
        label: The new one, for everyone who still names the old one.
        actor: Who moves it.
        note: Told what is done.
        wait_s: How long to wait for runs.

    Raises:
        StoreTakenError: The new one holds something else.
        StoreInUseError: Runs did not end in time. No new run begins until the move is repeated or undone.
        StoreError: One of them cannot be used.
    """
    move = _Move(origin=origin, destination=destination, label=label, actor=actor, note=note)
    began = time.monotonic()
    # A service shows its principals to administrators alone: without them, the move would be incomplete.
    origin.get(layout.PRINCIPALS)
    if not _is_decided(move):
        _require_free(origin, destination)
        own = change_identity(origin, lambda now: now).id
        change_identity(
            destination, lambda now: dataclasses.replace(now, moving_to=label, moved_from=own, moved_to="")
        )
        move.copy("While runs go on")
        began = time.monotonic()
        _copy_the_rest(move, wait_s)
    _open_destination(move)
    states = StateService(destination)
    return MovedStore(
        objects=sum(1 for _ in _keys(destination)),
        states=sum(1 for _ in states.names()),
        stopped_s=time.monotonic() - began,
    )


def _copy_the_rest(move: _Move, wait_s: float) -> None:
    """Stop runs, copy what changed since, and leave the old store for good."""
    change_identity(move.origin, lambda now: dataclasses.replace(now, moving_to=move.label))
    frozen = _freeze(move, wait_s)
    move.copy("With runs stopped")
    move.require_same()
    states = StateService(move.destination)
    for name in frozen:
        states.locks.thaw(name, move.actor)
    old = change_identity(move.origin, lambda now: now)
    change_identity(move.destination, lambda now: dataclasses.replace(now, keys=old.keys))
    # Before the new store opens: at no moment may runs use both.
    change_identity(move.origin, lambda now: dataclasses.replace(now, moved_to=move.label, moving_to=""))


def _open_destination(move: _Move) -> None:
    change_identity(move.destination, lambda now: dataclasses.replace(now, moving_to=""))


def _is_decided(move: _Move) -> bool:
    """Return whether an earlier attempt left the old store, and was killed before the new one opened."""
    old, new = read_identity(move.origin), read_identity(move.destination)
    if old is None or new is None or not new.moving_to:
        return False
    return old.moved_to == move.label and new.moved_from == old.id


def _require_free(origin: Objects, destination: Objects) -> None:
    old, new = read_identity(origin), read_identity(destination)
    if old is not None and old.moved_to:
        old.require_here()
    if new is not None and new.moving_to:
        if old is None or new.moved_from != old.id:
            raise StoreTakenError("Another store is being moved there.")
        # An earlier attempt was killed.
        return
    if new is not None and new.moved_to:
        raise StoreTakenError(f"Everything in it was moved to {new.moved_to}.")
    if any(True for _ in _keys(destination)) or (new is not None and new.keys):
        raise StoreTakenError("The store to move to is not empty.")


def _freeze(move: _Move, wait_s: float) -> list[str]:
    """Freeze every state, and wait until no run and no lock is left; return what was frozen here."""
    states, until = StateService(move.origin), time.monotonic() + wait_s
    reason = f"{_REASON}{move.label}"
    frozen = []
    for name in states.names():
        with contextlib.suppress(UnknownStateError, StateRefusedError):
            head = states.head(name)
            if head.freeze is None:
                states.locks.freeze(name, move.actor, reason=reason)
            if head.freeze is None or head.freeze.reason == reason:
                frozen.append(name)
    runs, told = RunWatch(move.origin), ""
    with watch(move.origin, layout.RUNS) as changes:
        while left := _list_at_work(move.origin, states, runs):
            text = f"Waiting for {', '.join(left)}."
            if text != told:
                move.note(text)
            told = text
            if time.monotonic() >= until:
                raise StoreInUseError(f"Still at work: {', '.join(left)}.")
            changes.wait(_LOOK_EVERY_S)
    return frozen


def _list_at_work(origin: Objects, states: StateService, fates: RunWatch) -> list[str]:
    runs = [entry.key for entry in origin.list(layout.RUNS)]
    alive = [key.removeprefix(layout.RUNS) for key in runs if fates.explain_death(key) is None]
    locked = [
        head.name
        for head in states.heads()
        if head.lock is not None and (head.lock.lease is None or fates.explain_death(head.lock.lease) is None)
    ]
    return [*(f"run {run}" for run in alive), *(f"the lock of {name}" for name in locked)]


def abort_move(origin: Objects, actor: Actor) -> int:
    """Undo what a move that was given up did to the old store; return how many states were frozen by it.

    Raises:
        StoreMovedError: It was completed.
        StoreError: The store cannot be used.
    """
    known = read_identity(origin)
    if known is not None and known.moved_to:
        known.require_here()
    states, count = StateService(origin), 0
    for head in list(states.heads()):
        if head.freeze is not None and head.freeze.reason.startswith(_REASON):
            states.locks.thaw(head.name, actor)
            count += 1
    if known is not None:
        change_identity(origin, lambda now: dataclasses.replace(now, moving_to=""))
    return count


def _keys(objects: Objects) -> Iterator[str]:
    """Yield the names of everything that belongs to the site."""
    after = ""
    while entries := objects.list("", after=after):
        for entry in entries:
            if not entry.key.startswith(_LEFT):
                yield entry.key
        after = entries[-1].key
