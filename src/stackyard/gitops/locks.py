"""Which pull request has a target, where targets are applied before the merge; and which ones wait, in order.

A lock is taken when something is applied, never by a plan. It is given back once the pull request is merged
or closed, or by its own `unlock`; whoever waits longest has it then.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.clients.objects import ABSENT, ConflictError, StoreDamagedError
from stackyard.state import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stackyard.clients.objects import Objects, Stored
    from stackyard.sources.store import ChosenStore

__all__ = ["TargetLock", "TargetLocks"]

_ATTEMPTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLock:
    """Who has a target.

    Attributes:
        holder: The pull request that has it; 0 for none.
        waiting: Those that want it, the first to get it first.
    """

    holder: int = 0
    waiting: tuple[int, ...] = field(default=())

    def take(self, number: int) -> TargetLock:
        """Return it with a pull request as its holder, or as the last one that waits."""
        if self.holder in (0, number):
            return TargetLock(holder=number, waiting=self.waiting)
        if number in self.waiting:
            return self
        return TargetLock(holder=self.holder, waiting=(*self.waiting, number))

    def release(self, number: int) -> TargetLock:
        """Return it without a pull request; the first one that waits has it then."""
        waiting = tuple(one for one in self.waiting if one != number)
        if self.holder != number:
            return TargetLock(holder=self.holder, waiting=waiting)
        return TargetLock(holder=waiting[0] if waiting else 0, waiting=waiting[1:])


@dataclass(frozen=True, slots=True)
class TargetLocks:
    """The locks of one repository.

    Args:
        store: The store.
        repository: `owner/name`.
    """

    store: ChosenStore
    repository: str

    def read(self, targets: Iterable[str]) -> dict[str, TargetLock]:
        """Return the locks of some targets that somebody has.

        Raises:
            StoreError: The store cannot say.
        """
        with closing(self.store.read()) as objects:
            found = {name: _load(objects.get(self._key(name)), name) for name in targets}
        return {name: lock for name, lock in found.items() if lock.holder}

    def take(self, target: str, number: int) -> TargetLock:
        """Take a target for a pull request, or queue it up, and return who has it.

        Raises:
            StoreError: The store cannot be used.
            ConflictError: Others kept writing it.
        """
        with closing(self.store.open()) as objects:
            return self._change(objects, self._key(target), lambda lock: lock.take(number))

    def release(self, number: int) -> tuple[str, ...]:
        """Give everything back that a pull request has or waits for, and return the targets that it had.

        Raises:
            StoreError: The store cannot be used.
            ConflictError: Others kept writing it.
        """
        prefix, after, had = self._key("x")[:-1], "", list[str]()
        with closing(self.store.open()) as objects:
            while listed := objects.list(prefix, after=after):
                for one in listed:
                    lock = _load(objects.get(one.key), one.key)
                    if number in (lock.holder, *lock.waiting):
                        self._change(objects, one.key, lambda lock: lock.release(number))
                    if number == lock.holder:
                        had.append(one.key.removeprefix(prefix).replace("!", "/"))
                after = listed[-1].key
        return tuple(had)

    def _key(self, target: str) -> str:
        return layout.gitops(self.repository, "locks", target)

    def _change(self, objects: Objects, key: str, decide: Callable[[TargetLock], TargetLock]) -> TargetLock:
        for attempt in range(1, _ATTEMPTS + 1):
            stored = objects.get(key)
            before = _load(stored, key)
            lock = decide(before)
            if stored is not None and lock == before:
                return lock
            said = orjson.dumps({"holder": lock.holder, "waiting": lock.waiting})
            try:
                objects.put(key, said, expect=ABSENT if stored is None else stored.tag)
            except ConflictError:
                if attempt == _ATTEMPTS:
                    raise
                continue
            return lock
        raise AssertionError("an attempt returns or raises")


def _load(stored: Stored | None, key: str) -> TargetLock:
    if stored is None:
        return TargetLock()
    try:
        said: Any = parse_json(stored.data, SMALL)
        return TargetLock(holder=int(said["holder"]), waiting=tuple(map(int, said["waiting"])))
    except (JsonError, KeyError, TypeError, ValueError) as err:
        raise StoreDamagedError(f"The lock {key} is damaged.") from err
