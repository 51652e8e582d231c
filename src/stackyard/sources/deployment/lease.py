"""The lease of the object: one session writes at a time, seen to be alive, replaced when it is not.

Reading needs no lease. Anyone who writes holds it from before the fetch to after the upload; the credentials
for writing are looked at only while it is held. A lease that is lost in the middle stops nothing that is
under way, because a half-done write is worse; the result is reported as suspect instead.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from stackyard.base import events
from stackyard.base.errors import BusyError, StackyardError
from stackyard.clients.objects import (
    ABSENT,
    ConflictError,
    LeaseWatch,
    StoreError,
    StoreReadOnlyError,
    StoreUnsafeError,
    Tag,
    acquire,
)
from stackyard.clients.objects.heartbeat import Heartbeat
from stackyard.clients.objects.holders import describe_process
from stackyard.sources.deployment.lease_status import (
    LeaseStatus,
    describe_holder,
    format_duration,
    look_at_lease,
)
from stackyard.sources.deployment.open_store import open_lease_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stackyard.clients.objects import Lease, Objects
    from stackyard.sources.deployment.settings import ObjectLocation

__all__ = ["HeldLease", "LeaseHeldError", "SuspectError", "hold_lease"]

_MAY_WRITE = (
    "Writing the object takes the right to write its lease. In a bucket that is KEY.lease, written with the"
    " credentials S3_*; `lease:` in deployment.yaml puts it elsewhere."
)
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
        "Wait for it, or look with `stackyard deployment lease status`; if its holder is gone for good,"
        " run `stackyard deployment lease break --reason TEXT`."
    )


class SuspectError(StackyardError):
    """The lease was lost while the work continued; the work was finished, and someone has to look at it."""

    code = "E-DEPLOYMENT-SUSPECT"
    summary = "The work was finished without the lease: look at what was written"
    default_remedy = "Compare the last versions: `stackyard deployment diff @1 @0`."


@runtime_checkable
class _KeepsVersions(Protocol):
    """A store that keeps each heartbeat as a version, which is of no use."""

    def versions_behind(self, key: str, tag: Tag) -> tuple[str, ...]:
        """Return the versions that are older than the one with this content."""

    def drop_versions(self, key: str, version_ids: Iterable[str]) -> None:
        """Remove versions."""


class HeldLease:
    """A lease that is held, renewed by a thread of its own until it is given back."""

    def __init__(self, lease: Lease, versions: _KeepsVersions | None = None) -> None:
        self._lease = lease
        self._versions = versions
        self._heartbeat = Heartbeat(lease)

    @property
    def is_held(self) -> bool:
        """Whether it is ours, as far as we know."""
        return self._heartbeat.is_held

    @property
    def is_lost(self) -> bool:
        """Whether someone took it over."""
        return self._heartbeat.is_lost

    def check(self) -> None:
        """Look whether it is still ours, now."""
        if self.is_held:
            self._heartbeat.beat()

    def give_back(self) -> None:
        """Stop renewing, and let others have it."""
        self._heartbeat.stop()
        if self.is_lost:
            return
        # A store that is gone by now gets no answer from us, and the lease runs out by itself.
        with contextlib.suppress(StoreError):
            self._drop_old_versions()
        with contextlib.suppress(StoreError):
            self._lease.release()

    def _drop_old_versions(self) -> None:
        """Drop what we leave behind in a bucket that keeps versions, while no one else writes to the lease.

        Seen with SeaweedFS 4: a version that is removed while the next one is written can take the next one
        with it, and its writer then finds that it holds nothing.
        """
        tag = self._lease.tag
        if self._versions is not None and tag is not None:
            key = self._lease.key
            self._versions.drop_versions(key, self._versions.versions_behind(key, tag))


@contextlib.contextmanager
def hold_lease(
    place: ObjectLocation,
    doing: str,
    *,
    wait_s: float | None = None,
    promise_s: float | None = None,
    emit: events.Emit = events.ignore,
) -> Iterator[HeldLease]:
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
        try:
            lease = _wait(objects, key, doing, limit_s=limit_s, promise_s=ttl_s, emit=emit)
        except StoreReadOnlyError as err:
            # A lease beside the object in a bucket is written with the credentials that read it.
            raise StoreReadOnlyError(
                f"The lease {key} cannot be written: {err.detail}", where=err.where, remedy=_MAY_WRITE
            ) from err
        try:
            _prove_conditions(objects, key)
        except BaseException:
            with contextlib.suppress(StoreError):
                lease.release()
            raise
        held = HeldLease(lease, objects if isinstance(objects, _KeepsVersions) else None)
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
    facts = {"doing": doing, "acquired_at": f"{time.time():.0f}", **describe_process()}
    watch = LeaseWatch()
    owner = f"{describe_holder()} pid {os.getpid()}"

    def take() -> Lease | None:
        return acquire(objects, key, owner=owner, promise_s=promise_s, facts=facts, watch=watch)

    lease = take()
    if lease is not None:
        return lease
    began, look_s = time.monotonic(), _SHORTEST_LOOK_S
    longest_s = _LONGEST_LOOK_S if isinstance(objects, _KeepsVersions) else _LONGEST_LOCAL_LOOK_S
    told: tuple[str, bool] | None = None
    # No store tells when an object changes, so that looking again is all there is.
    looking = threading.Event()
    with events.step(emit, "lease", "Waiting for the lease of the object") as step:
        while time.monotonic() - began < limit_s:
            status = look_at_lease(objects, key, watch)
            # A renewal comes after a third of the time: half of it without one says that something is wrong.
            news = (status.id, status.expires_in_s < status.promise_s / 2)
            if status.is_held and news != told:
                told = news
                step.waiting(str(status))
                step.log(f"The lease is held by {_describe_wait(status)}.", events.LogLevel.WARNING)
            looking.wait(look_s * random.uniform(0.5, 1.5))  # noqa: S311 - to keep writers from meeting
            look_s = min(look_s * 1.5, longest_s)
            lease = take()
            if lease is not None:
                return lease
    status = look_at_lease(objects, key, watch)
    raise LeaseHeldError(f"Waited {format_duration(limit_s)} for the lease of the object: {status}.")


def _describe_wait(status: LeaseStatus) -> str:
    """Say what a session that waits is waiting for, and until when."""
    at = time.strftime("%H:%M:%S", time.localtime(time.time() + status.expires_in_s))
    return f"{status} (this session then takes it over, at {at})"
