"""Whose run it is: what a principal that is limited to a prefix may write of runs.

The name of a run does not tell its state, and what a lease says of itself is the word of its writer. So the
service writes down who created a lease (`run-owners/<id>`), and the state of the first record that the same
principal writes of the run. Of a principal that is limited to a prefix,

- only the owner replaces or removes a lease, adds events and writes the record,
- the owner, and whoever has the right on the state of the run, asks it to stop and removes old events.

A run that has no owner, because it uses the store directly, is not theirs. Principals with the right on all
states may write everything.
"""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.clients.objects import ABSENT, ConflictError
from stackyard.state import layout, store_rights
from stackyard.state.http.answers import RightMissingError
from stackyard.state.principals import Right
from stackyard.state.record_keys import parse_record_key
from stackyard.state.run_records import events_prefix

if TYPE_CHECKING:
    from stackyard.clients.objects import Expect, Objects, Stored
    from stackyard.state.principals import Principal

__all__ = ["RunOwner", "RunOwners"]

_LEASE, _EVENTS, _CONTROL, _RECORD = "runs", "run-events", "run-control", "records"


@dataclass(frozen=True, slots=True)
class RunOwner:
    """Who started a run, and on which state; empty until its record is written."""

    principal: str
    state: str = ""


class RunOwners:
    """The owners of the runs of a store.

    Args:
        objects: The store.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def read(self, run_id: str) -> RunOwner | None:
        """Return the owner of a run, None where it has none."""
        return _load(self._objects.get(layout.run_owner(run_id)))

    def check_put(self, principal: Principal, key: str, expect: Expect) -> None:
        """Refuse to write an object of a run that is not the principal's.

        Raises:
            RightMissingError: It is not.
        """
        kind, run_id = _parse(key)
        if not run_id or store_rights.has_every(principal):
            return
        owner = self.read(run_id)
        if owner is None and kind == _LEASE and expect is ABSENT and not self._has_events(run_id):
            return
        if not (_is_owner(principal, owner) or (kind == _CONTROL and _has_state(principal, owner))):
            raise _refusal(principal, key, run_id)

    def check_delete(self, principal: Principal, key: str) -> bool:
        """Refuse to remove an object of a run that is not the principal's; return whether it is there.

        Raises:
            RightMissingError: It is not.
        """
        kind, run_id = _parse(key)
        if not run_id or kind == _RECORD or store_rights.has_every(principal):
            return True
        owner = self.read(run_id)
        if _is_owner(principal, owner) or (kind != _LEASE and _has_state(principal, owner)):
            return True
        # Who removes something again has removed it before.
        if self._objects.get(key) is None:
            return False
        raise _refusal(principal, key, run_id)

    def note_put(self, principal: Principal, key: str, expect: Expect) -> None:
        """Write down who created a lease, and the state of the run."""
        kind, run_id = _parse(key)
        if kind == _LEASE and run_id and expect is ABSENT:
            # Behind the lease: whose lease was refused must not become the owner.
            self._put(run_id, RunOwner(principal.name), ABSENT)
        record = parse_record_key(key)
        stored = None if record is None else self._objects.get(layout.run_owner(run_id))
        owner = _load(stored)
        if record is None or stored is None or owner is None or not _is_owner(principal, owner):
            return
        if not owner.state:
            self._put(run_id, dataclasses.replace(owner, state=record.state), stored.tag)

    def note_delete(self, key: str) -> None:
        """Forget the owner of a run of which nothing is left that only its owner may write."""
        kind, run_id = _parse(key)
        if run_id and kind in (_LEASE, _RECORD):
            is_at_work = self._objects.get(f"{layout.RUNS}{run_id}") is not None
            if not is_at_work and not self._has_events(run_id):
                self._objects.delete(layout.run_owner(run_id))

    def _has_events(self, run_id: str) -> bool:
        return bool(self._objects.list(events_prefix(run_id), limit=1))

    def _put(self, run_id: str, owner: RunOwner, expect: Expect) -> None:
        with contextlib.suppress(ConflictError):
            self._objects.put(layout.run_owner(run_id), orjson.dumps(owner), expect=expect)


def _load(stored: Stored | None) -> RunOwner | None:
    try:
        return None if stored is None else RunOwner(**parse_json(stored.data, SMALL))
    except (JsonError, TypeError):
        # No one is the owner, which forbids more than it allows.
        return None


def _parse(key: str) -> tuple[str, str]:
    """Return what of a run an object holds, and the run; empty where it is of none."""
    record = parse_record_key(key)
    if record is not None:
        return _RECORD, record.id
    kind, _, rest = key.partition("/")
    if kind == _EVENTS:
        return kind, rest.partition("/")[0]
    # All of it: whoever creates `runs/a/b` is not the owner of the run `a`.
    return kind, rest if kind in (_LEASE, _CONTROL) else ""


def _is_owner(principal: Principal, owner: RunOwner | None) -> bool:
    return owner is not None and owner.principal == principal.name


def _has_state(principal: Principal, owner: RunOwner | None) -> bool:
    return owner is not None and bool(owner.state) and principal.may(Right.STORE, owner.state)


def _refusal(principal: Principal, key: str, run_id: str) -> RightMissingError:
    return RightMissingError(
        f"{principal.name} did not start the run {run_id}, and lacks the right store on all states, which"
        f" {key} of another run needs."
    )
