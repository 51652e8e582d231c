"""Leases: who does a piece of work, proven alive by a heartbeat, without trusting any clock but one's own.

The owner of a lease writes to its object at short intervals. Anyone who wants it watches: an object that does
not change for as long as the lease promises, by the watcher's own clock, has no owner any more. An owner on
the watcher's own machine is looked at instead: a process that has ended is not waited for. Each owner has a
higher epoch than the one before, so that one who was only asleep finds out at its next heartbeat.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.base.errors import BusyError
from stackyard.clients.objects.base import ABSENT, ConflictError, Objects, StoreDamagedError, Tag
from stackyard.clients.objects.holders import is_process_gone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Lease", "LeaseDamagedError", "LeaseInfo", "LeaseLostError", "LeaseWatch", "acquire", "read_lease"]

# No lease promises more; anyone who writes more does not mean a lease.
LONGEST_PROMISE_S = 7 * 86_400.0


class LeaseLostError(BusyError):
    """A lease that we held was taken over, because our heartbeat stopped for too long."""

    code = "E-LEASE-LOST"
    summary = "Another client took over the lease"
    default_remedy = "Look what the other run does, then run the command again."


class LeaseDamagedError(StoreDamagedError):
    """Something else is where a lease should be.

    Args:
        detail: What was found.
        tag: The content that was read.
    """

    code = "E-LEASE-DAMAGED"
    summary = "A lease cannot be read"
    default_remedy = (
        "Find out who wrote it. `stackyard deployment lease break --reason TEXT` replaces the lease of the"
        " deployment object; any other is removed with the tools of the store."
    )

    def __init__(self, detail: str, *, tag: Tag) -> None:
        super().__init__(detail)
        self.tag = tag


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseInfo:
    """What the object of a lease says.

    Attributes:
        owner: Who holds it, or held it last.
        epoch: The number of this holding; each is higher than the one before.
        beat: Counts the heartbeats.
        promise_s: It is dead when it has not changed for this long.
        is_released: Whether the owner gave it back.
        facts: What the owner says of itself, such as its process.
        tag: The content that was read.
    """

    owner: str
    epoch: int
    beat: int
    promise_s: float
    is_released: bool
    facts: Mapping[str, str]
    tag: Tag


def read_lease(objects: Objects, key: str) -> LeaseInfo | None:
    """Return what is known of a lease, None if no one ever held it."""
    stored = objects.get(key)
    if stored is None:
        return None
    try:
        return _parse(parse_json(stored.data, SMALL), stored.tag)
    except (JsonError, TypeError, KeyError) as err:
        raise LeaseDamagedError(f"{key} is not the object of a lease.", tag=stored.tag) from err


def _parse(fields: Any, tag: Tag) -> LeaseInfo:
    """Return what a lease says; what others wrote there may be anything.

    Raises:
        TypeError, KeyError: It is something else.
    """
    kinds = {"owner": str, "epoch": int, "beat": int, "promise_s": int | float, "is_released": bool}
    if not isinstance(fields, dict) or not isinstance(fields["facts"], dict):
        raise TypeError("no object")
    for name, kind in kinds.items():
        if not isinstance(fields[name], kind):
            raise TypeError(name)
    if not 0 < fields["promise_s"] <= LONGEST_PROMISE_S:
        raise TypeError("promise_s")
    facts = {name: text for name, text in fields["facts"].items() if isinstance(text, str)}
    return LeaseInfo(**{name: fields[name] for name in kinds}, facts=facts, tag=tag)


class LeaseWatch:
    """Remembers since when leases have not changed, as this process saw them.

    Args:
        clock: Seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[Tag, float]] = {}

    def silent_s(self, key: str, lease: LeaseInfo) -> float:
        """Return for how long we have seen a lease unchanged; zero at the first look."""
        now = self._clock()
        tag, since = self._seen.get(key, ("", now))
        if tag != lease.tag:
            since = now
            self._seen[key] = (lease.tag, now)
        return now - since

    def waits_s(self, key: str, lease: LeaseInfo) -> float:
        """Return for how much longer a lease has to be seen unchanged before it counts as dead."""
        return max(0.0, lease.promise_s - self.silent_s(key, lease))

    def is_dead(self, key: str, lease: LeaseInfo) -> bool:
        """Return whether a lease may be taken over.

        It was given back, its process on this machine has ended, or it has not changed for as long as it
        promised to.
        """
        # In this order: the silence is counted from the first look, also at a lease that is dead.
        is_silent = self.waits_s(key, lease) == 0.0
        return lease.is_released or is_silent or is_process_gone(lease.facts)


def acquire(
    objects: Objects,
    key: str,
    *,
    owner: str,
    promise_s: float,
    facts: Mapping[str, str] | None = None,
    watch: LeaseWatch | None = None,
) -> Lease | None:
    """Take a lease that is free, given back or proven dead; None while it is held.

    Args:
        objects: The store.
        key: The object of the lease.
        owner: Who we are.
        promise_s: How long we may be silent; a third of it is a good interval for `Lease.beat`.
        facts: What others may want to know of us.
        watch: What was seen of the lease before; without one only a free lease can be taken.
    """
    there = read_lease(objects, key)
    if there is not None and not (there.is_released or (watch is not None and watch.is_dead(key, there))):
        return None
    epoch = 1 if there is None else there.epoch + 1
    lease = Lease(objects, key, owner=owner, epoch=epoch, promise_s=promise_s, facts=dict(facts or {}))
    try:
        lease.begin(None if there is None else there.tag)
    except ConflictError:
        return None
    return lease


class Lease:
    """A lease that we hold; made by `acquire`.

    Attributes:
        key: Its object.
        owner: Who we said that we are.
        epoch: The number of this holding.
        promise_s: How long we may be silent.
    """

    def __init__(
        self,
        objects: Objects,
        key: str,
        *,
        owner: str,
        epoch: int,
        promise_s: float,
        facts: Mapping[str, str],
    ) -> None:
        self._objects = objects
        self.key = key
        self.owner = owner
        self.epoch = epoch
        self.promise_s = promise_s
        # The same owner may hold it twice in a row; the number tells the holdings apart in their content too.
        self._facts = {**facts, "holding": str(uuid.uuid4())}
        self._beats = 0
        self._tag: Tag | None = None

    @property
    def tag(self) -> Tag | None:
        """What we wrote last; None when it is lost."""
        return self._tag

    def begin(self, replaced: Tag | None) -> None:
        """Write it for the first time, in place of what was there."""
        self._tag = self._objects.put(
            self.key, self._content(is_released=False), expect=ABSENT if replaced is None else replaced
        )

    def beat(self) -> None:
        """Prove that we are alive.

        Raises:
            LeaseLostError: Someone else has it now.
        """
        self._beats += 1
        self._replace(is_released=False)

    def release(self) -> None:
        """Give it back; nothing happens if it is lost already."""
        try:
            self._replace(is_released=True)
        except LeaseLostError:
            return

    def _replace(self, *, is_released: bool) -> None:
        if self._tag is None:
            raise LeaseLostError(f"The lease {self.key} is not held.")
        try:
            self._tag = self._objects.put(self.key, self._content(is_released=is_released), expect=self._tag)
        except ConflictError as err:
            self._tag = None
            raise LeaseLostError(f"The lease {self.key} of {self.owner} was taken over.") from err

    def _content(self, *, is_released: bool) -> bytes:
        return orjson.dumps(
            {
                "owner": self.owner,
                "epoch": self.epoch,
                "promise_s": self.promise_s,
                "beat": self._beats,
                "is_released": is_released,
                "facts": self._facts,
            }
        )
