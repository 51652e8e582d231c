"""The versions of a state: looking at them, going back to one, dropping old ones, sweeping up left-overs."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

from stackyard.clients.objects.clock import read_store_clock
from stackyard.state import bodies, layout, ledger, lock_rules
from stackyard.state.contents import add_version, describe_version
from stackyard.state.document import read_document, with_serial
from stackyard.state.model import Actor, AuditAction, History, Version, VersionKind
from stackyard.state.refusals import BodyRefusedError, VersionMissingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.state.heads import Core, Edit

__all__ = ["Versions"]

# A content that no head names may belong to a write that is under way; after this time it cannot.
_SWEPT_AFTER_S = 3600.0
_PAGE = 1000


class Versions:
    """The versions of all states."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def newest_first(self, name: str) -> Iterator[Version]:
        """Yield the versions of a state that are kept, the newest first.

        Raises:
            UnknownStateError: There is no such state.
        """
        head = self._core.require(name)
        return ledger.versions_newest_first(self._core.objects, name, head.history)

    def get(self, name: str, number: int) -> Version:
        """Return one version.

        Raises:
            VersionMissingError: There is none of this number, or it was dropped.
        """
        head = self._core.require(name)
        if head.current is not None and head.current.number == number:
            return head.current
        found = ledger.find_version(self._core.objects, name, head.history, number)
        if found is None:
            raise VersionMissingError(f"{name} has no version {number}; it has {_range(head.history.count)}.")
        return found

    def read(self, name: str, version: Version) -> bytes:
        """Return the content of a version, checked against its hash."""
        return bodies.read_body(self._core.objects, name, version).data

    def roll_back(self, name: str, number: int, actor: Actor, *, note: str = "") -> Version:
        """Make the content of an earlier version the current one, as a new version.

        A plain state gets a serial above all others, so that clients take it for the newest. An encrypted one
        cannot be changed without its key: it is served as it is, with its old serial.

        Raises:
            VersionMissingError: There is no such version.
            StateLockedError: The state is locked or frozen.
            StateDeletedError: The state was deleted.
        """
        old = self.get(name, number)
        data = self.read(name, old)
        return self._core.change(name, lambda edit: self._roll_back(edit, old, data, actor, note))

    def _roll_back(self, edit: Edit, old: Version, data: bytes, actor: Actor, note: str) -> Version:
        lock_rules.refuse_deleted(edit.head)
        lock_rules.refuse_locked(edit)
        why = f"Version {old.number} again.{f' {note}' if note else ''}"
        if old.is_encrypted:
            new = dataclasses.replace(
                old,
                number=edit.head.history.count + 1,
                at=edit.now,
                kind=VersionKind.SERVED,
                principal=actor.principal,
                address=actor.address,
                lock_id="",
                epoch=0,
                note=why,
            )
        else:
            new = self._rewrite_serial(edit, old, data, actor, why)
        add_version(edit, new, actor, AuditAction.ROLLED_BACK)
        return new

    def _rewrite_serial(self, edit: Edit, old: Version, data: bytes, actor: Actor, why: str) -> Version:
        serial, lineage = edit.head.top_serial + 1, edit.head.lineage or old.lineage
        changed = with_serial(data, serial, lineage)
        document = read_document(changed)
        if (document.serial, document.lineage) != (serial, lineage):
            raise BodyRefusedError(f"Version {old.number} of {edit.head.name} cannot be given a new serial.")
        sha256 = bodies.sha256_of(changed)
        body = bodies.make_body_name(sha256)
        edit.write({layout.body(edit.head.name, body): bodies.pack(changed)})
        return describe_version(
            edit,
            document,
            actor,
            kind=VersionKind.ROLLBACK,
            sha256=sha256,
            size=len(changed),
            body=body,
            note=why,
        )

    # --- Dropping

    def drop_old(self, name: str, actor: Actor) -> int:
        """Drop the versions that are beyond the number and the age that the policy keeps; return how many.

        The current version stays whatever its age.
        """
        policy = self._core.policy

        def change(edit: Edit) -> tuple[int, int]:
            history = edit.head.history
            first = history.kept_from
            kept_from = max(first, history.count - policy.keep_versions + 1)
            if kept_from > first:
                kept_from = min(kept_from, self._first_young(name, history, edit.now) or kept_from)
            if kept_from > first:
                edit.set(history=dataclasses.replace(history, kept_from=kept_from))
                edit.audit(actor, AuditAction.DROPPED, detail=f"Versions {first} to {kept_from - 1}.")
            return first, kept_from

        first, kept_from = self._core.change(name, change)
        if kept_from > first:
            self.sweep(name)
        return kept_from - first

    def _first_young(self, name: str, history: History, now: float) -> int | None:
        """Return the number of the first version that is too young to be dropped."""
        oldest = ledger.versions_oldest_first(self._core.objects, name, history)
        young = (one.number for one in oldest if one.at > now - self._core.policy.keep_versions_s)
        return next(young, None)

    def sweep(self, name: str, *, older_than_s: float = _SWEPT_AFTER_S) -> int:
        """Remove contents that no kept version names: of dropped versions, and left by killed writers.

        Returns:
            How many.
        """
        listed = list(self._bodies(name))
        # Read after the list: a content that came into use in between is then known.
        head = self._core.require(name)
        kept = {one.body for one in ledger.versions_newest_first(self._core.objects, name, head.history)}
        kept.add("" if head.current is None else head.current.body)
        left = [(entry, modified_at) for entry, modified_at in listed if entry not in kept]
        # By the clock of the store: with one that is ahead, what another writes just now would look old.
        before = read_store_clock(self._core.objects) - older_than_s if left else 0.0
        gone = [entry for entry, modified_at in left if modified_at < before]
        for which in gone:
            self._core.objects.delete(layout.body(name, which))
        self._drop_segments(name, before=(head.history.kept_from - 1) // ledger.SEGMENT)
        return len(gone)

    def _drop_segments(self, name: str, *, before: int) -> None:
        """Remove the segments all of whose versions were dropped."""
        end = layout.version_segment(name, before)
        for entry in self._core.objects.list(layout.version_segments(name), limit=_PAGE):
            if entry.key < end:
                self._core.objects.delete(entry.key)

    def _bodies(self, name: str) -> Iterator[tuple[str, float]]:
        prefix, after = layout.bodies(name), ""
        for _ in itertools.count():
            entries = self._core.objects.list(prefix, after=after, limit=_PAGE)
            if not entries:
                return
            for entry in entries:
                yield entry.key.removeprefix(prefix), entry.modified_at
            after = entries[-1].key


def _range(count: int) -> str:
    return "none" if not count else f"1 to {count}"
