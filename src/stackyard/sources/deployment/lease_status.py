"""Looking at the lease of the object, and taking it away from a holder that cannot give it back."""

from __future__ import annotations

import contextlib
import getpass
import math
import os
import socket
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT, ConflictError, LeaseInfo, read_lease
from stackyard.clients.objects.holders import is_process_gone
from stackyard.clients.objects.leases import LeaseDamagedError
from stackyard.sources.deployment.open_store import open_lease_objects

if TYPE_CHECKING:
    from stackyard.clients.objects import LeaseWatch, Objects
    from stackyard.sources.deployment.settings import ObjectLocation

__all__ = [
    "LeaseNotOursError",
    "LeaseStatus",
    "break_lease",
    "describe_holder",
    "format_duration",
    "lease_status",
    "look_at_lease",
    "release_lease",
]


class LeaseNotOursError(InvalidInputError):
    """A lease is to be given back that is not the one that is named."""

    code = "E-DEPLOYMENT-LEASE-ID"
    summary = "This is not the lease that is held"
    default_remedy = "`stackyard deployment lease status` shows the id of the one that is."


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseStatus:
    """A lease, for a person.

    Attributes:
        is_held: Whether it is held, as far as one look can tell.
        id: The number of this holding.
        holder: Who.
        doing: What for.
        age_s: For how long it has been held, by the clocks of its holder and of this machine.
        renewed_s: How long ago it was renewed, by the clocks of the store and of this machine.
        expires_in_s: For how long a writer has to see no renewal before it takes the lease over. For one that
            waits already this is what is left of it; zero where the holder is known to be dead.
        promise_s: For how long its holder may leave it unrenewed.
        is_watched: Whether this session waits for it.
        is_dead: Whether its process, on this machine, has ended.
    """

    is_held: bool
    id: str = ""
    holder: str = ""
    doing: str = ""
    age_s: float = 0.0
    renewed_s: float = 0.0
    expires_in_s: float = 0.0
    promise_s: float = 0.0
    is_watched: bool = False
    is_dead: bool = False

    def __str__(self) -> str:
        if not self.is_held:
            return "The lease is free."
        text = f"{self.holder} ({self.doing or 'unknown work'}), for {format_duration(self.age_s)}"
        if self.is_dead:
            return f"{text}; its process has ended, and the next writer takes the lease over at once"
        left, whose = format_duration(self.expires_in_s), "" if self.is_watched else " for the next writer"
        return (
            f"{text}, last renewed {format_duration(self.renewed_s)} ago; expires in {left}{whose} unless"
            " renewed"
        )


def format_duration(seconds: float) -> str:
    """Return a length of time for a person."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def describe_holder() -> str:
    """Return who we are, as leases and histories name us."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def look_at_lease(objects: Objects, key: str, watch: LeaseWatch | None = None) -> LeaseStatus:
    """Look at the lease.

    Args:
        objects: Where it is.
        key: Its name there.
        watch: What this session has seen of it. No other clock decides when it is dead: those of the store
            and of the holder may be wrong.
    """
    found = read_lease(objects, key)
    if found is None or found.is_released:
        return LeaseStatus(is_held=False)
    now = time.time()
    modified = next((entry.modified_at for entry in objects.list(key) if entry.key == key), now)
    is_dead = is_process_gone(found.facts)
    left_s = found.promise_s if watch is None else watch.waits_s(key, found)
    return LeaseStatus(
        is_held=True,
        id=found.facts.get("holding", str(found.epoch)),
        holder=found.owner,
        doing=found.facts.get("doing", ""),
        age_s=max(0.0, now - _seconds(found.facts.get("acquired_at", ""), modified)),
        renewed_s=max(0.0, now - modified),
        expires_in_s=0.0 if is_dead else left_s,
        promise_s=found.promise_s,
        is_watched=watch is not None,
        is_dead=is_dead,
    )


def _seconds(text: str, otherwise: float) -> float:
    """Read a time that a holder wrote, which may be any text."""
    try:
        said = float(text)
    except ValueError:
        return otherwise
    return said if math.isfinite(said) else otherwise


def lease_status(place: ObjectLocation) -> LeaseStatus:
    """Return who holds the lease.

    Raises:
        StoreError: The store cannot be used.
    """
    objects, key = open_lease_objects(place, create=False)
    with contextlib.closing(objects):
        return look_at_lease(objects, key)


def release_lease(place: ObjectLocation, lease_id: str) -> LeaseStatus:
    """Give back a lease whose holder cannot any more, by its id; return what it was.

    Raises:
        LeaseNotOursError: Another one is held, or none.
    """
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        found = read_lease(objects, key)
        status = look_at_lease(objects, key)
        if found is None or not status.is_held or status.id != lease_id:
            raise LeaseNotOursError(f"{status} Its id is {status.id or 'none'}, not {lease_id}.")
        _free(objects, key, found)
    return status


def break_lease(place: ObjectLocation, reason: str) -> LeaseStatus:
    """Take a lease away from its holder; first write down who did it and why. Return what it was.

    Raises:
        LeaseNotOursError: No one holds it, or its holder gave a sign at this very moment.
    """
    objects, key = open_lease_objects(place)
    with contextlib.closing(objects):
        try:
            found = read_lease(objects, key)
            status = look_at_lease(objects, key)
        except LeaseDamagedError as err:
            # What others wrote there, or a store that lost half of it, must not block all writers for ever.
            found = LeaseInfo(
                owner="unknown",
                epoch=time.time_ns(),
                beat=0,
                promise_s=float(place.settings.lease_ttl_s),
                is_released=False,
                facts={},
                tag=err.tag,
            )
            status = LeaseStatus(is_held=True, holder=found.owner, doing="the lease was not readable")
        if found is None or not status.is_held:
            raise LeaseNotOursError(str(status))
        _record_break(objects, key, {"by": describe_holder(), "reason": reason}, (status, found.epoch))
        _free(objects, key, found)
    return status


def _record_break(objects: Objects, key: str, why: dict[str, str], what: tuple[LeaseStatus, int]) -> None:
    status, epoch = what
    lease = {"id": status.id, "holder": status.holder, "doing": status.doing, "epoch": epoch}
    record = {"at": time.time(), **why, "lease": lease}
    objects.put(f"{key}-audit/{time.time_ns()}-{epoch}", orjson.dumps(record), expect=ABSENT)


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
