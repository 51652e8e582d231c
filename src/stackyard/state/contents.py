"""The contents of states: reading the current one, writing a new one, keeping what was refused."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.clients.objects import StoreDamagedError
from stackyard.state import bodies, layout, ledger, lock_rules, write_rules
from stackyard.state.document import StateDocument, read_document
from stackyard.state.heads import Core, Decision, Edit
from stackyard.state.model import Actor, AuditAction, Index, Quarantined, StateHead, Version, VersionKind
from stackyard.state.names import check_name
from stackyard.state.refusals import (
    BodyRefusedError,
    StateLockedError,
    StateRefusedError,
    VersionMissingError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.state.model import Grant

__all__ = ["Content", "Contents"]

Refusal = StateRefusedError | StateLockedError


@dataclass(frozen=True, slots=True)
class Content:
    """What a state holds now: the version and its bytes."""

    version: Version
    body: bodies.Body


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """A write that was read and may be stored."""

    actor: Actor
    incoming: write_rules.IncomingWrite
    packed: bytes
    note: str
    # Chosen once, so that a write that is decided again uses the same objects.
    body_name: str
    quarantine_name: str


class Contents:
    """The contents of all states."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def read(self, name: str) -> Content | None:
        """Return what a state holds; None only when it certainly never held anything.

        Raises:
            StateDeletedError: It was deleted.
            UnknownStateError: It is not registered, and must be.
            StoreError: The store cannot say, or what it holds is damaged.
        """
        for _ in range(2):
            head = self._core.heads.read(check_name(name))
            if head is None:
                self._core.edit(name, head, 0.0)
                return None
            lock_rules.refuse_deleted(head)
            if head.current is None:
                return None
            try:
                return Content(head.current, bodies.read_body(self._core.objects, name, head.current))
            except StoreDamagedError:
                # Between the two reads a newer version may have been written and this one been dropped.
                if self._core.heads.read(name) == head:
                    raise
        raise StoreDamagedError(f"{name} changes faster than it can be read.")

    def write(
        self,
        name: str,
        data: bytes,
        actor: Actor,
        *,
        lock_id: str = "",
        md5: str | None = None,
        note: str = "",
    ) -> Version:
        """Store a new content, and return its version; the same content again is the same version.

        What is refused although it is a state is kept (`quarantined`).

        Args:
            name: The state.
            data: The content.
            actor: Who writes.
            lock_id: The lock that it writes under; empty without one.
            md5: The checksum that came with it, in base64.
            note: Why it is written, for the history.

        Raises:
            BodyRefusedError: It is no state, or not what its checksum says.
            StateLockedError: Someone else holds the lock.
            NotHolderError: The lock is not held.
            StateConflictError: It does not follow the current content.
            StateDeletedError: The state was deleted.
            UnknownStateError: The state is not registered, and must be.
        """
        check_name(name)
        _check_md5(data, md5)
        document = read_document(data)
        sha256 = bodies.sha256_of(data)
        incoming = write_rules.IncomingWrite(
            document=document, sha256=sha256, size=len(data), lock_id=lock_id
        )
        write = _Write(
            actor=actor,
            incoming=incoming,
            packed=bodies.pack(data),
            note=note,
            body_name=bodies.make_body_name(sha256),
            quarantine_name=f"{int(self._core.clock() * 1_000_000):017d}-{uuid.uuid4().hex[:8]}",
        )

        def decide(head: StateHead | None, now: float) -> Decision[Version | Refusal]:
            edit = self._core.edit(name, head, now)
            current = edit.head.current
            if (
                current is not None
                and edit.head.tombstone is None
                and (current.serial, current.sha256) == (document.serial, sha256)
            ):
                # The answer to the first attempt was lost, or there is nothing to change.
                return Decision(current)
            try:
                return Decision(_accept(edit, write, self._core), edit)
            except (StateRefusedError, StateLockedError) as err:
                self._quarantine(edit, write, err)
                return Decision(err, edit)

        result = self._core.heads.change(name, decide)
        if isinstance(result, StateRefusedError | StateLockedError):
            raise result
        return result

    # --- What was refused

    def list_quarantined(self, name: str) -> Iterator[Quarantined]:
        """Yield the refused writes of a state that are kept, the oldest first."""
        for entry in self._core.objects.list(layout.quarantine(name)):
            stored = self._core.objects.get(entry.key)
            if stored is not None:
                yield _read_quarantined(stored.data, entry.key)[0]

    def read_quarantined(self, name: str, which: str) -> tuple[Quarantined, bytes]:
        """Return a refused write with its content.

        Raises:
            VersionMissingError: There is none of this id.
        """
        key = layout.quarantine_key(name, which)
        stored = self._core.objects.get(key)
        if stored is None:
            raise VersionMissingError(f"{name} has no refused write {which}.")
        found, packed = _read_quarantined(stored.data, key)
        return found, bodies.unpack(packed, key)

    def drop_old_quarantined(self, name: str) -> int:
        """Remove the oldest refused writes beyond what the policy keeps; return how many."""
        entries = self._core.objects.list(layout.quarantine(name), limit=10_000)
        surplus = entries[: max(0, len(entries) - self._core.policy.keep_quarantined)]
        for entry in surplus:
            self._core.objects.delete(entry.key)
        return len(surplus)

    def _quarantine(self, edit: Edit, write: _Write, err: Refusal) -> None:
        incoming, actor = write.incoming, write.actor
        record = Quarantined(
            id=write.quarantine_name,
            at=edit.now,
            reason=err.detail,
            serial=incoming.document.serial,
            lineage=incoming.document.lineage,
            sha256=incoming.sha256,
            size=incoming.size,
            principal=actor.principal,
            address=actor.address,
            lock_id=incoming.lock_id,
        )
        key = layout.quarantine_key(edit.head.name, write.quarantine_name)
        edit.write({key: orjson.dumps(record) + b"\n" + write.packed})
        edit.audit(
            actor,
            AuditAction.WRITE_REFUSED,
            lock_id=incoming.lock_id,
            serial=incoming.document.serial,
            size=incoming.size,
            detail=f"{err.code}: {err.detail} Kept as {write.quarantine_name}.",
        )


def _accept(edit: Edit, write: _Write, core: Core) -> Version:
    """Make a write the current content, unless a rule forbids it."""
    incoming = write.incoming
    grant = write_rules.judge(edit.head, incoming, core.policy, edit.now)
    if grant is not None:
        edit.set(grants=tuple(one for one in edit.head.grants if one.id != grant.id))
    edit.write({layout.body(edit.head.name, write.body_name): write.packed})
    lock = edit.head.lock
    if lock is not None:
        edit.set(lock=dataclasses.replace(lock, last_write_at=edit.now))
    new = describe_version(
        edit,
        incoming.document,
        write.actor,
        sha256=incoming.sha256,
        size=incoming.size,
        body=write.body_name,
        lock_id=incoming.lock_id,
        note=write.note or _note(grant, incoming),
    )
    add_version(edit, new, write.actor, AuditAction.WRITTEN)
    if not incoming.document.is_encrypted:
        edit.set(index=Index(sha256=incoming.sha256, holdings=incoming.document.holdings))
    return new


def _note(grant: Grant | None, incoming: write_rules.IncomingWrite) -> str:
    if grant is not None:
        return f"{', '.join(grant.overrides)} overridden by {grant.by}: {grant.reason}"
    return "" if incoming.lock_id else "written without a lock"


def describe_version(
    edit: Edit,
    document: StateDocument,
    actor: Actor,
    *,
    kind: VersionKind = VersionKind.WRITE,
    **facts: Any,
) -> Version:
    """Return the record of a new version.

    Args:
        edit: The head that gets it.
        document: What the content says.
        actor: Who makes it.
        kind: How it comes to be.
        facts: The other fields of the version.
    """
    read = {
        name: getattr(document, name) for name in StateDocument.__dataclass_fields__ if name != "holdings"
    }
    fields: dict[str, Any] = {
        "number": edit.head.history.count + 1,
        "at": edit.now,
        "principal": actor.principal,
        "address": actor.address,
        "epoch": 0 if edit.head.lock is None else edit.head.lock.epoch,
        "kind": kind,
        **read,
        **facts,
    }
    return Version(**fields)


def add_version(edit: Edit, new: Version, actor: Actor, action: AuditAction) -> None:
    """Make a version the current one."""
    history, before = ledger.add_version(edit.head.name, edit.head.history, new)
    edit.write(before)
    edit.set(current=new, history=history, top_serial=max(edit.head.top_serial, new.serial))
    edit.audit(
        actor,
        action,
        lock_id=new.lock_id,
        epoch=new.epoch,
        serial=new.serial,
        version=new.number,
        size=new.size,
        detail=new.note,
    )


def _check_md5(data: bytes, md5: str | None) -> None:
    if md5 is None:
        return
    try:
        wanted = base64.b64decode(md5, validate=True)
    except binascii.Error as err:
        raise BodyRefusedError("The checksum (Content-MD5) is not base64.") from err
    if not hmac.compare_digest(wanted, hashlib.md5(data, usedforsecurity=False).digest()):
        raise BodyRefusedError(
            "The content is not what its checksum (Content-MD5) says: it was cut off or changed."
        )


def _read_quarantined(data: bytes, key: str) -> tuple[Quarantined, bytes]:
    record, _, packed = data.partition(b"\n")
    try:
        return Quarantined(**parse_json(record)), packed
    except (JsonError, TypeError) as err:
        raise StoreDamagedError(f"{key} is damaged.") from err
