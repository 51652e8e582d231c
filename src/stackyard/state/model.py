"""The values of the state service, all frozen; times are seconds since 1970."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.state.document import Holding
    from stackyard.state.lockinfo import LockInfo

__all__ = [
    "ANONYMOUS",
    "Actor",
    "AuditAction",
    "AuditEntry",
    "Chain",
    "Freeze",
    "Grant",
    "HeldLock",
    "History",
    "Index",
    "Override",
    "Quarantined",
    "SpentLock",
    "StateHead",
    "Tombstone",
    "Version",
    "VersionKind",
    "Waiter",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something: the principal that was authenticated, and where it came from."""

    principal: str
    address: str = ""


ANONYMOUS = Actor(principal="-")


class VersionKind(enum.StrEnum):
    """How a version came to be."""

    WRITE = "write"
    ROLLBACK = "rollback"
    SERVED = "served"


class Override(enum.StrEnum):
    """A rule that a grant lifts for one write."""

    LINEAGE = "lineage"
    SERIAL = "serial"
    DROP = "drop"


class AuditAction(enum.StrEnum):
    """What an audit entry records."""

    REGISTERED = "registered"
    LOCKED = "locked"
    UNLOCKED = "unlocked"
    BROKEN = "lock-broken"
    TAKEN_OVER = "lock-taken-over"
    WITHDRAWN = "lock-withdrawn"
    WRITTEN = "written"
    WRITE_REFUSED = "write-refused"
    ROLLED_BACK = "rolled-back"
    FROZEN = "frozen"
    THAWED = "thawed"
    DELETED = "deleted"
    RESTORED = "restored"
    GRANTED = "granted"
    DROPPED = "versions-dropped"
    PRINCIPAL_SET = "principal-set"
    PRINCIPAL_REMOVED = "principal-removed"
    LOGIN_REFUSED = "login-refused"
    RESEALED = "resealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLock:
    """A lock that is held.

    Attributes:
        info: What the client said, byte by byte.
        epoch: The number of this grant; each is higher than the one before.
        principal: Who was authenticated.
        address: Where from.
        since_at: When it was granted.
        last_write_at: When its holder wrote last.
        lease: The object that proves the holder alive, where stackyard itself started it.
    """

    info: LockInfo
    epoch: int
    principal: str
    address: str
    since_at: float
    last_write_at: float | None = None
    lease: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentLock:
    """An ID that can never hold the lock again: released by its holder, or broken by someone else."""

    id: str
    epoch: int
    at: float
    is_broken: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A client that asked for the lock and was refused.

    Attributes:
        info: What it said.
        since_at: When it asked first, by the clock of the machine that wrote the entry, as all times here.
        seen_at: When it asked last.
        polls: How often it asked; one that asked twice waits, and will ask again.
        due_at: When it will have asked again. Who has seen the entry unchanged for as long as from `seen_at`
            to `due_at` knows that it is gone.
    """

    info: LockInfo
    since_at: float
    seen_at: float
    polls: int
    due_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A content that a state had.

    Attributes:
        number: Counts the versions of the state from one.
        serial: The engine's number; those of a state only grow, but by an override.
        lineage: Which state it is a content of.
        sha256: The hash of the content, in hexadecimal digits.
        size: How many bytes the content has.
        body: Which object holds it.
        at: When it was written.
        principal: Who wrote it.
        address: Where from.
        lock_id: Under which lock; empty without one.
        epoch: The epoch of that lock.
        kind: How it came to be.
        resources: How many resources it describes; none are known of an encrypted one.
        instances: How many instances they have.
        outputs: How many outputs it has.
        engine_version: The engine that wrote it.
        is_encrypted: Whether the engine encrypted it.
        note: Why, where it was not an ordinary write.
    """

    number: int
    serial: int
    lineage: str
    sha256: str
    size: int
    body: str
    at: float
    principal: str
    address: str = ""
    lock_id: str = ""
    epoch: int = 0
    kind: VersionKind = VersionKind.WRITE
    resources: int = 0
    instances: int = 0
    outputs: int = 0
    engine_version: str = ""
    is_encrypted: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A write that was refused, kept so that no result of an apply is ever lost.

    Attributes:
        id: Its name.
        at: When it came.
        reason: Why it was refused.
        serial: The serial in it.
        lineage: The lineage in it.
        sha256: The hash of the content.
        size: How many bytes it has.
        principal: Who sent it.
        address: Where from.
        lock_id: Under which lock, as it said.
    """

    id: str
    at: float
    reason: str
    serial: int
    lineage: str
    sha256: str
    size: int
    principal: str
    address: str = ""
    lock_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The right to break some rules with one write, once, until it expires."""

    id: str
    overrides: tuple[Override, ...]
    by: str
    reason: str
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """Someone keeps everyone from locking a state."""

    by: str
    reason: str
    since_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """A state was deleted, and can be restored."""

    by: str
    reason: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One line of the audit log, tied to the one before by its hash.

    Attributes:
        seq: Its number, from one.
        at: When it happened.
        action: What happened.
        principal: Who did it.
        address: Where from.
        lock_id: The lock in question.
        epoch: Its epoch.
        serial: The serial in question.
        version: The version in question.
        size: How many bytes were sent.
        detail: Why, in words.
        previous: The hash of the entry before.
        hash: The hash of everything above.
    """

    seq: int
    at: float
    action: AuditAction
    principal: str
    address: str = ""
    lock_id: str = ""
    epoch: int = 0
    serial: int | None = None
    version: int | None = None
    size: int | None = None
    detail: str = ""
    previous: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """An audit log: its newest entries, how many segments of older ones there are, and where it ends."""

    tail: tuple[AuditEntry, ...] = ()
    sealed: int = 0
    count: int = 0
    last_hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The versions of a state: the newest, how many segments of older ones there are, and what was dropped.

    Attributes:
        tail: The newest versions, the oldest of them first.
        sealed: How many segments hold the versions before these.
        count: The number of the newest version.
        kept_from: The versions below this number were dropped, but for the current one.
    """

    tail: tuple[Version, ...] = ()
    sealed: int = 0
    count: int = 0
    kept_from: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What the resources of a content represent, so that no one has to read it to know who has what.

    Attributes:
        sha256: The content that it is of.
        holdings: Type, node and id of each.
    """

    sha256: str
    holdings: tuple[Holding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateHead:
    """Everything about a state but its contents. Replacing it is the one moment at which a change happens.

    Attributes:
        name: The state.
        revision: Counts the changes.
        created_at: When it was first heard of.
        epoch: The epoch of the newest grant of the lock.
        lock: The lock, when it is held.
        spent: The IDs that held it last, the newest at the end.
        waiting: Those who wait for it, the first at the start.
        current: The content that it has now; None before the first write.
        top_serial: The highest serial that any version had.
        history: Its versions.
        audit: Its audit log.
        freeze: Set while it is frozen.
        tombstone: Set while it is deleted.
        grants: Rights to break a rule once.
        index: What the resources of a content represent, written with it.
    """

    name: str
    created_at: float
    revision: int = 0
    epoch: int = 0
    lock: HeldLock | None = None
    spent: tuple[SpentLock, ...] = ()
    waiting: tuple[Waiter, ...] = ()
    current: Version | None = None
    top_serial: int = 0
    history: History = field(default_factory=History)
    audit: Chain = field(default_factory=Chain)
    freeze: Freeze | None = None
    tombstone: Tombstone | None = None
    grants: tuple[Grant, ...] = ()
    index: Index | None = None

    @property
    def holdings(self) -> tuple[Holding, ...] | None:
        """What the resources of the current content represent; None where it has to be read to know."""
        index, current = self.index, self.current
        if index is None or current is None or index.sha256 != current.sha256:
            return None
        return index.holdings

    @property
    def serial(self) -> int | None:
        """The serial of the current content."""
        return None if self.current is None else self.current.serial

    @property
    def lineage(self) -> str | None:
        """The lineage of the current content."""
        return None if self.current is None else self.current.lineage
