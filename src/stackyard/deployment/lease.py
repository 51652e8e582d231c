"""The lease of the object: one session writes at a time, seen to be alive, replaced when it is not.

Reading needs no lease. Whoever writes holds it from before the fetch to after the upload; the credentials
for writing are looked at only while it is held. A lease that is lost in the middle stops nothing that is
under way, because a half-done write is worse; the result is reported as suspect instead.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import orjson

from stackyard import events
from stackyard.deployment.opening import open_lease_objects
from stackyard.errors import BusyError, InvalidInputError, StackyardError
from stackyard.objects import (
    ABSENT,
    ConflictError,
    LeaseLostError,
    LeaseWatch,
    StoreError,
    StoreUnsafeError,
    Tag,
    acquire,
    read_lease,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.deployment.settings import Place
    from stackyard.objects import Lease, LeaseInfo, Objects

__all__ = [
    "Held",
    "LeaseHeldError",
    "LeaseNotOursError",
    "LeaseStatus",
    "SuspectError",
    "break_lease",
    "held_lease",
    "lease_status",
    "release_lease",
    "who",
]

# No content has this tag in any store.
_NO_TAG = '"00000000000000000000000000000000"'
_SHORTEST_LOOK_S, _LONGEST_LOOK_S = 0.02, 2.0
# A look at a file of this machine costs next to nothing.
_LONGEST_LOCAL_LOOK_S = 0.1


class LeaseHeldError(BusyError):
    """Another session held the lease of the object for longer than we wait."""

    code = "E-DEPLOYMENT-LEASE"
    summary = "Another session is writing the deployment object"
    default_remedy = (
        "Wait for it, or look with `stackyard deployment lease status`; where it is gone for good and nobody"
        " works on it, `stackyard deployment lease break --reason TEXT`."
    )


class LeaseNotOursError(InvalidInputError):
    """A lease is to be given back that is not the one that is named."""

    code = "E-DEPLOYMENT-LEASE-ID"
    summary = "This is not the lease that is held"
    default_remedy = "`stackyard deployment lease status` shows the id of the one that is."


class SuspectError(StackyardError):
    """The lease was lost while the work went on; the work was finished, and somebody has to look at it."""

    code = "E-DEPLOYMENT-SUSPECT"
    summary = "The work was finished without the lease: look at what was written"
    default_remedy = "Compare the last versions: `stackyard deployment diff @1 @0`."


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStatus:
    """A lease, for a person.

    Attributes:
        is_held: Whether somebody holds it, as far as anybody can tell from one look.
        id: The number of this holding.
        holder: Who.
        doing: What for.
        age_s: For how long it has been held.
        expires_in_s: When it counts as dead unless its holder gives a sign; negative where it should be.
    """

    is_held: bool
    id: str = ""
    holder: str = ""
    doing: str = ""
    age_s: float = 0.0
    expires_in_s: float = 0.0

    def __str__(self) -> str:
        if not self.is_held:
            return "Nobody holds the lease."
        return f"{self.holder} ({self.doing or 'unknown work'}), for {_duration(self.age_s)}, " + (
            f"expires in {_duration(self.expires_in_s)} unless renewed"
            if self.expires_in_s >= 0
            else f"expired {_duration(-self.expires_in_s)} ago"
        )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def who() -> str:
    """Return who we are, as leases and histories name us."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@runtime_checkable
class _Signs(Protocol):
    """A store that keeps each sign of life as a version, which is of no use to anybody."""

    def versions_behind(self, key: str, tag: Tag) -> tuple[str, ...]:
        """Return the versions that are older than the one with this content."""

    def drop_versions(self, key: str, version_ids: Iterable[str]) -> None:
        """Remove versions."""


class Held:
    """A lease that is held, renewed by a thread of its own until it is given back."""

    def __init__(self, lease: Lease, signs: _Signs | None = None) -> None:
        self._lease = lease
        self._signs = signs
        self._ending = threading.Event()
        self._lost = threading.Event()
        self._beating = threading.Lock()
        self._renewing = threading.Thread(target=self._renew, name="deployment-lease", daemon=True)
        self._renewing.start()

    @property
    def is_held(self) -> bool:
        """Whether it is ours, as far as we know."""
        return not self._lost.is_set() and not self._ending.is_set()

    @property
    def is_lost(self) -> bool:
        """Whether somebody took it over."""
        return self._lost.is_set()

    def check(self) -> None:
        """Look whether it is still ours, now."""
        if not self.is_held:
            return
        with contextlib.suppress(StoreError):
            self._beat()

    def give_back(self) -> None:
        """Stop renewing, and let others have it."""
        self._ending.set()
        self._renewing.join()
        if self.is_lost:
            return
        # A store that is gone by now gets no answer from us, and the lease runs out by itself.
        with contextlib.suppress(StoreError):
            self._drop_old_signs()
        with contextlib.suppress(StoreError):
            self._lease.release()

    def _drop_old_signs(self) -> None:
        """Drop what we leave behind in a bucket that keeps versions, while nobody else writes to the lease.

        Seen with SeaweedFS 4: a version that is removed while the next one is written can take the next one
        with it, and its writer then finds that it holds nothing.
        """
        tag = self._lease.tag
        if self._signs is not None and tag is not None:
            key = self._lease.key
            self._signs.drop_versions(key, self._signs.versions_behind(key, tag))

    def _renew(self) -> None:
        while not self._ending.wait(self._lease.promise_s / 3):
            # A store that is away for a moment is tried again; if it was away for too long, we are told so.
            with contextlib.suppress(StoreError):
                self._beat()
            if self.is_lost:
                return

    def _beat(self) -> None:
        # Two signs of life at once would each take the other for somebody else's.
        with self._beating:
            try:
                self._lease.beat()
            except LeaseLostError:
                self._lost.set()


@contextlib.contextmanager
def held_lease(
    place: Place,
    doing: str,
    *,
    wait_s: float | None = None,
    promise_s: float | None = None,
    emit: events.Emit = events.ignore,
) -> Iterator[Held]:
    """Hold the lease for the length of a block.

    Args:
        place: Where the object is.
        doing: What for, for others to see.
        wait_s: How long to wait for another session; what the settings say when absent.
        promise_s: How long we may be silent before others may take it; what the settings say when absent.
        emit: Told who holds it while we wait.

    Raises:
        LeaseHeldError: Another session kept it.
        StoreError: The store cannot be used.
    """
    objects, key = open_lease_objects(place)
    try:
        limit_s = place.settings.lease_wait_s if wait_s is None else wait_s
        ttl_s = place.settings.lease_ttl_s if promise_s is None else promise_s
        lease = _wait(objects, key, doing, limit_s=limit_s, promise_s=ttl_s, emit=emit)
        _prove_conditions(objects, key)
        held = Held(lease, objects if isinstance(objects, _Signs) else None)
        try:
            yield held
        finally:
            held.give_back()
    finally:
        objects.close()


def _prove_conditions(objects: Objects, key: str) -> None:
    """Prove, on the lease that we just took, that the store refuses what a condition forbids.

    Raises:
        StoreUnsafeError: It does not, so that two sessions could hold the lease.
    """
    for expect in (ABSENT, Tag(_NO_TAG)):
        with contextlib.suppress(ConflictError):
            objects.put(key, b"", expect=expect)
            raise StoreUnsafeError("The store of the lease ignores conditions: two sessions could hold it.")


def _wait(
    objects: Objects, key: str, doing: str, *, limit_s: float, promise_s: float, emit: events.Emit
) -> Lease:
    facts = {"doing": doing, "pid": str(os.getpid()), "acquired_at": f"{time.time():.0f}"}
    watch = LeaseWatch()
    owner = f"{who()} pid {os.getpid()}"

    def take() -> Lease | None:
        return acquire(objects, key, owner=owner, promise_s=promise_s, facts=facts, watch=watch)

    lease = take()
    if lease is not None:
        return lease
    began, look_s = time.monotonic(), _SHORTEST_LOOK_S
    longest_s = _LONGEST_LOOK_S if isinstance(objects, _Signs) else _LONGEST_LOCAL_LOOK_S
    told = ""
    # No store tells when an object changes, so that looking again is all there is.
    looking = threading.Event()
    with events.step(emit, "lease", "Waiting for the lease of the object") as step:
        while time.monotonic() - began < limit_s:
            status = _status(objects, key)
            if status.is_held and status.id != told:
                told = status.id
                step.waiting(str(status))
                step.log(f"The lease is held by {status}.", events.LogLevel.WARNING)
            looking.wait(look_s * random.uniform(0.5, 1.5))  # noqa: S311 - to keep writers from meeting
            look_s = min(look_s * 1.5, longest_s)
            lease = take()
            if lease is not None:
                return lease
    raise LeaseHeldError(f"Waited {_duration(limit_s)} for the lease of the object: {_status(objects, key)}.")


def _status(objects: Objects, key: str) -> LeaseStatus:
    found = read_lease(objects, key)
    if found is None or found.is_released:
        return LeaseStatus(is_held=False)
    modified = next((entry.modified_at for entry in objects.list(key) if entry.key == key), time.time())
    acquired = float(found.facts.get("acquired_at", modified))
    now = time.time()
    return LeaseStatus(
        is_held=True,
        id=_id(found),
        holder=found.owner,
        doing=found.facts.get("doing", ""),
        age_s=max(0.0, now - acquired),
        expires_in_s=modified + found.promise_s - now,
    )


def _id(found: LeaseInfo) -> str:
    return found.facts.get("holding", str(found.epoch))


def lease_status(place: Place) -> LeaseStatus:
    """Return who holds the lease.

    Raises:
        StoreError: The store cannot be used.
    """
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        return _status(objects, key)


def release_lease(place: Place, lease_id: str) -> LeaseStatus:
    """Give back a lease whose holder cannot any more, by its id; return what it was.

    Raises:
        LeaseNotOursError: Another one is held, or none.
    """
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        found = read_lease(objects, key)
        status = _status(objects, key)
        if found is None or not status.is_held or status.id != lease_id:
            raise LeaseNotOursError(f"{status} Its id is {status.id or 'none'}, not {lease_id}.")
        _free(objects, key, found)
    return status


def break_lease(place: Place, reason: str) -> LeaseStatus:
    """Take a lease away from its holder; first write down who did it and why. Return what it was.

    Raises:
        LeaseNotOursError: Nobody holds it, or its holder gave a sign at this very moment.
    """
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        found = read_lease(objects, key)
        status = _status(objects, key)
        if found is None or not status.is_held:
            raise LeaseNotOursError(str(status))
        record = {
            "at": time.time(),
            "by": who(),
            "reason": reason,
            "lease": {"id": status.id, "holder": status.holder, "doing": status.doing, "epoch": found.epoch},
        }
        audit = f"{key}-audit/{time.time_ns()}-{found.epoch}"
        objects.put(audit, orjson.dumps(record), expect=ABSENT)
        _free(objects, key, found)
    return status


def _free(objects: Objects, key: str, found: LeaseInfo) -> None:
    content = {
        "owner": found.owner,
        "epoch": found.epoch,
        "promise_s": found.promise_s,
        "beat": found.beat + 1,
        "is_released": True,
        "facts": dict(found.facts),
    }
    try:
        objects.put(key, orjson.dumps(content), expect=found.tag)
    except ConflictError as err:
        raise LeaseNotOursError("The holder gave a sign of life at this moment: it is alive.") from err
