"""Proposed changes in the store, sealed: the document, who approved it, and how far it was applied."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ABSENT, StoreDamagedError
from stackyard.path.stacks.state_change.document import StateChange, StateChangeFileError, parse_change
from stackyard.sources.store.sealed import open_sealed
from stackyard.state import layout
from stackyard.state.names import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects, Tag
    from stackyard.sources.store import ChosenStore

__all__ = ["Approval", "ChangeRecord", "ChangeRecords", "ChangeUnknownError"]


class ChangeUnknownError(InvalidInputError):
    """There is no proposed change of that id in the store."""

    code = "E-STATE-CHANGE-UNKNOWN"
    summary = "There is no such change of a state"
    default_remedy = "`stackyard stack state list` shows all changes and their IDs."


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """That somebody approved a change.

    Attributes:
        by: Who.
        at: When, in UTC.
        document: The digest of the document that was approved.
        is_alone: Whether it is the one who proposed it, and said so.
    """

    by: str
    at: str
    document: str
    is_alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRecord:
    """A proposed change, and what became of it.

    Attributes:
        change: The document.
        state: The name of the state.
        approval: Who approved it.
        expected: The digest of what the state is to hold, from just before it is written.
        applied_by: Who applied it; empty as long as no one did.
        applied_at: When, in UTC.
        kept: What the former state is found by: a version of the store, or the id of this change.
        tag: What the store has to hold when this is replaced.
    """

    change: StateChange
    state: str
    approval: Approval | None = None
    expected: str = ""
    applied_by: str = ""
    applied_at: str = ""
    kept: str = ""
    tag: Tag | None = None

    @property
    def status(self) -> str:
        """How far it is."""
        if self.applied_at:
            return "applied"
        return "proposed" if self.approval is None else "approved"

    @property
    def is_approved(self) -> bool:
        """Whether exactly this document was approved."""
        return self.approval is not None and self.approval.document == self.change.digest

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            **self.change.document(),
            "status": self.status,
            "approval": None if self.approval is None else asdict(self.approval),
            "applied_by": self.applied_by or None,
            "applied_at": self.applied_at or None,
            "kept": self.kept or None,
        }


class ChangeRecords:
    """The proposed changes of a store.

    Args:
        store: The store of the stacks.
        objects: The same, open.
    """

    def __init__(self, store: ChosenStore, objects: Objects) -> None:
        self._objects = objects
        self._sealed = open_sealed(store, objects)

    def list(self) -> Iterator[ChangeRecord]:
        """Yield all of them, those of one state in the order in which they were proposed.

        Raises:
            StoreError: The store cannot be read.
        """
        for key in self._keys():
            found = self._read(key)
            if found is not None:
                yield found

    def find(self, named: str) -> ChangeRecord:
        """Return one.

        Args:
            named: Its id, or how that begins where it is enough.

        Raises:
            ChangeUnknownError: There is none, or more than one.
        """
        keys = [key for key in self._keys() if key.rpartition("/")[2].startswith(named)] if named else []
        if len(keys) > 1:
            ids = ", ".join(key.rpartition("/")[2] for key in keys)
            raise ChangeUnknownError(f"More than one change begins with `{named}`: {ids}.")
        found = self._read(keys[0]) if keys else None
        if found is None:
            raise ChangeUnknownError(f"The store has no change `{named}`.")
        return found

    def get(self, state: str, which: str) -> ChangeRecord | None:
        """Return the record of a change of a state, None where there is none."""
        return self._read(layout.state_change(state, which))

    def put(self, record: ChangeRecord) -> ChangeRecord:
        """Store a record that was read from here, or a new one.

        Raises:
            ConflictError: Somebody else changed it meanwhile.
            StoreError: It cannot be stored.
        """
        said = {name: getattr(record, name) for name in ("expected", "applied_by", "applied_at", "kept")}
        approval = None if record.approval is None else asdict(record.approval)
        data = orjson.dumps({**said, "approval": approval, "change": record.change.document()})
        key = layout.state_change(record.state, record.change.id)
        tag = self._sealed.put(key, data, expect=ABSENT if record.tag is None else record.tag)
        return replace(record, tag=tag)

    def keep_state(self, record: ChangeRecord, data: bytes) -> None:
        """Keep the state of another backend as it was before a change."""
        key = layout.kept_state(record.state, record.change.id)
        if self._objects.get(key) is None:
            self._sealed.put(key, data, expect=ABSENT)

    def discard(self, record: ChangeRecord) -> None:
        """Remove a change, and the former state that it kept."""
        self._objects.delete(layout.kept_state(record.state, record.change.id))
        self._objects.delete(layout.state_change(record.state, record.change.id))

    def _keys(self) -> Iterator[str]:
        after = ""
        while listed := self._objects.list(layout.STATE_CHANGES, after=after):
            yield from (one.key for one in listed)
            after = listed[-1].key

    def _read(self, key: str) -> ChangeRecord | None:
        stored = self._sealed.get(key)
        if stored is None:
            return None
        try:
            said = parse_json(stored.data)
            approval = said["approval"]
            return ChangeRecord(
                change=parse_change(said["change"]),
                state=name_of(key.removeprefix(layout.STATE_CHANGES).partition("/")[0]),
                approval=None if approval is None else Approval(**approval),
                tag=stored.tag,
                **{name: said[name] for name in ("expected", "applied_by", "applied_at", "kept")},
            )
        except (ValueError, KeyError, TypeError, StateChangeFileError) as err:
            raise StoreDamagedError(f"{key} is damaged, or of a newer version of stackyard.") from err
