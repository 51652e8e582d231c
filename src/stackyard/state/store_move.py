"""Taking everything from one store to another, with runs stopped once and only for the last part.

First everything is copied while runs go on. Then the old store is marked, so that no new run begins, its
states are frozen, and what runs is waited for; what changed since is copied, both are compared, and the old
store says from then on where everything is. Each part can be repeated: a move that was killed is run again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
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
    from collections.abc import Callable, Iterator, Mapping

    from stackyard.clients.objects import ListedObject, Objects
    from stackyard.sources.store.identity import StoreIdentity
    from stackyard.state.model import Actor

__all__ = ["MovedStore", "StoreInUseError", "StoreTakenError", "abort_move", "move_store"]

# What only a run that is at work needs, what is about one store alone, and what proves that it takes writes.
_LOCKS = ("operator-locks/", "cluster-locks/")
_LEFT = (layout.RUNS, "run-control/", *_LOCKS, layout.HEALTH, "system/checks/", "checks/", IDENTITY)
_LOOK_EVERY_S = 0.5
# Objects are read over the network side by side.
_AT_ONCE = 16
# Some stores tell the second in which an object was written, and no more.
_COARSE_S = 2.0
_REASON = "The store is being moved to "
_MOVE_AGAIN = "Run the same command again; `stackyard store move FROM --abort` cancels the move."


class StoreTakenError(InvalidInputError):
    """The destination of a move holds other objects, or is not free."""

    code = "E-STORE-TAKEN"
    summary = "The destination store is in use"
    default_remedy = "Choose an empty store: another bucket, prefix or schema."


class StoreInUseError(BusyError):
    """Runs in progress did not end in time, so that the store was not moved."""

    code = "E-STORE-IN-USE"
    summary = "Runs still use the store"
    default_remedy = (
        "Wait until they end (`stackyard runs list --outcome running`), then run the same command again."
        " Until then, no new run starts; `stackyard store move FROM --abort` cancels the move."
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

    def copy(
        self, what: str, *, since_at: float | None = None, known: Mapping[str, ListedObject] | None = None
    ) -> _Copied:
        """Make the destination have what the origin has, and prove it for everything that was written.

        Args:
            what: What is said of it.
            since_at: Only what the origin wrote since, by its own clock, or what a list shows otherwise.
            known: The list of the time before.
        """
        began_at = _time_of(self.origin)
        listed = {entry.key: entry for entry in _entries(self.origin)}
        there = {entry.key for entry in _entries(self.destination)}
        before = known or {}

        def is_due(entry: ListedObject) -> bool:
            is_seen = entry.key in there and entry == before.get(entry.key)
            return since_at is None or not is_seen or entry.modified_at >= since_at

        due = [key for key, entry in listed.items() if is_due(entry)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            changed = sum(pool.map(self._copy_one, due))
            gone = sorted(there - listed.keys())
            # They were removed from the origin since they were copied.
            list(pool.map(self.destination.delete, gone))
        self.note(f"{what}: {changed} objects copied, {len(gone)} removed.")
        return _Copied(began_at=began_at - _COARSE_S, listed=listed)

    def _copy_one(self, key: str) -> bool:
        stored = self.origin.get(key)
        if stored is None:
            self.destination.delete(key)
            return False
        known = self.destination.get(key)
        if known is not None and known.data == stored.data:
            return False
        self.destination.put(key, stored.data, expect=ANYTHING)
        known = self.destination.get(key)
        if known is None or known.data != stored.data:
            raise StoreDamagedError(
                f"{key} differs between the two stores. The move is not complete.", remedy=_MOVE_AGAIN
            )
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """What a copy saw: when it began by the clock of the origin, and what was there."""

    began_at: float
    listed: Mapping[str, ListedObject]


def _time_of(objects: Objects) -> float:
    """Return the time by the clock of a store."""
    key = f"system/checks/{uuid.uuid4().hex}"
    objects.put(key, b"", expect=ANYTHING)
    try:
        return max(entry.modified_at for entry in objects.list(key))
    finally:
        objects.delete(key)


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
        first = move.copy("First copy, while runs continue")
        began = time.monotonic()
        _copy_the_rest(move, first, wait_s)
    _open_destination(move)
    states = StateService(destination)
    return MovedStore(
        objects=sum(1 for _ in _entries(destination)),
        states=sum(1 for _ in states.names()),
        stopped_s=time.monotonic() - began,
    )


def _copy_the_rest(move: _Move, first: _Copied, wait_s: float) -> None:
    """Stop runs, copy what changed since, and leave the old store for good."""
    own = uuid.uuid4().hex
    change_identity(move.origin, lambda now: dataclasses.replace(now, moving_to=move.label, move_id=own))
    frozen = _freeze(move, wait_s)
    move.copy("Second copy, with no run in progress", since_at=first.began_at, known=first.listed)
    states = StateService(move.destination)
    for name in frozen:
        states.locks.thaw(name, move.actor)
    old = change_identity(move.origin, lambda now: now)
    change_identity(move.destination, lambda now: dataclasses.replace(now, keys=old.keys))
    # Before the new store opens: at no moment may runs use both.
    change_identity(move.origin, lambda now: _leave(now, move.label, own))


def _leave(now: StoreIdentity, label: str, move_id: str) -> StoreIdentity:
    """Return a store that was left by a move, unless that was given up, or another one began, meanwhile."""
    if now.move_id != move_id:
        raise StoreInUseError(
            "The move was cancelled, or another one was started. This one is not complete.",
            remedy=_MOVE_AGAIN,
        )
    return dataclasses.replace(now, moved_to=label, moving_to="")


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
            raise StoreTakenError("Another store is being moved to the destination store.")
        # An earlier attempt was killed.
        return
    if new is not None and new.moved_to:
        raise StoreTakenError(f"The destination store was itself moved to {new.moved_to}.")
    if any(True for _ in _entries(destination)) or (new is not None and new.keys):
        raise StoreTakenError("The destination store is not empty.")


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
                raise StoreInUseError(f"Still in progress: {', '.join(left)}.")
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
        change_identity(origin, lambda now: dataclasses.replace(now, moving_to="", move_id=""))
    return count


def _entries(objects: Objects) -> Iterator[ListedObject]:
    """Yield everything that belongs to the site."""
    after = ""
    while entries := objects.list("", after=after):
        for entry in entries:
            if not entry.key.startswith(_LEFT):
                yield entry
        after = entries[-1].key
