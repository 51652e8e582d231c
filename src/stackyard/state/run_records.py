"""What is remembered of runs: who ran what, where, on which input, with which outcome, and their events.

What the name of a record tells is in `stackyard.state.record_keys`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import InvalidInputError
from stackyard.clients.objects import ANYTHING, StoreDamagedError, StoreReadOnlyError
from stackyard.clients.objects.clock import read_store_clock
from stackyard.clients.objects.holders import is_process_gone
from stackyard.clients.objects.leases import read_lease
from stackyard.state import layout
from stackyard.state.record_keys import RECORDS, begin_record_key, parse_record_key
from stackyard.state.recorded_run import Outcome, RecordedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from stackyard.clients.objects import Objects
    from stackyard.state.record_keys import ListedRecord

    Redact: TypeAlias = Callable[[str], str]

__all__ = ["Outcome", "RecordedRun", "RunRecords", "RunUnknownError", "StopRequest"]

_FORMAT = 1
_EVENTS = "run-events/"
_CONTROL = "run-control/"
_PAGE = 1000
_FIRST_PAGE = 25
_DAY_S = 86_400.0
# Records are read over the network side by side.
_AT_ONCE = 8
# A run is lost when its lease was not renewed for this many times as long as it promised.
_LOST_AFTER_PROMISES = 2.0


class RunUnknownError(InvalidInputError):
    """There is no record of such a run."""

    code = "E-RUN-UNKNOWN"
    summary = "There is no record of this run"
    default_remedy = "`stackyard runs list` shows the recorded runs."


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """That someone wants a run to stop."""

    by: str
    at: float


class RunRecords:
    """The records of a store.

    Args:
        objects: The store.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        # The clock of the store, and when by our own it was read.
        self._clock: tuple[float, float] | None = None

    def write(self, run: RecordedRun, redact: Redact | None = None) -> None:
        """Write a record; only the run itself does.

        Args:
            run: The record.
            redact: Masks the secrets in a text.

        Raises:
            StoreError: It cannot be stored.
        """
        text = orjson.dumps({"format": _FORMAT, "run": run}, option=orjson.OPT_NON_STR_KEYS).decode()
        self._objects.put(run.key, (redact(text) if redact else text).encode(), expect=ANYTHING)

    def find(self, which: str) -> RecordedRun:
        """Return the run of an id, or of how it begins where that is enough; `last` is the newest.

        Raises:
            RunUnknownError: There is none, or more than one.
            StoreError: The store cannot be read.
        """
        found: list[ListedRecord] = []
        for one in self._listed():
            if which == "last" or one.id.startswith(which):
                found.append(one)
            if found and (which == "last" or one.id == which):
                break
        if not found or not which:
            raise RunUnknownError(f"The store has no record of a run `{which}`.")
        if len(found) > 1:
            ids = ", ".join(one.id for one in found[:5])
            raise RunUnknownError(f"More than one run id starts with `{which}`: {ids}.")
        read = self._read(found[0])
        if read is None:
            raise RunUnknownError(f"The record of the run {which} was removed.")
        return self._with_fate(read)

    def list(
        self, *, limit: int = 20, state: str = "", verb: str = "", outcome: Outcome | None = None
    ) -> tuple[RecordedRun, ...]:
        """Return the newest runs, the newest first.

        Args:
            limit: How many.
            state: Those on this state, or on states below it; all when empty.
            verb: Those of this verb; all when empty.
            outcome: Those that ended so; all when absent.

        Raises:
            StoreError: The store cannot be read.
        """
        kept: list[RecordedRun] = []
        wanted = (one for one in self._listed() if _fits(one, state, verb))
        if outcome is Outcome.RUNNING:
            # Of those that are at work there is a lease: the others need not be read.
            alive = {entry.key.removeprefix(layout.RUNS) for entry in self._objects.list(layout.RUNS)}
            wanted = (one for one in wanted if one.id in alive)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while len(kept) < limit and (batch := _take(wanted, limit - len(kept))):
                read = [run for run in pool.map(self._read, batch) if run is not None]
                known = pool.map(self._with_fate, read)
                kept += [run for run in known if outcome is None or run.outcome is outcome]
        return tuple(kept[:limit])

    def _listed(self) -> Iterator[ListedRecord]:
        after, page = "", _FIRST_PAGE
        while entries := self._objects.list(RECORDS, after=after, limit=page):
            # Most ask for the newest few; who goes on wants many.
            page = min(4 * page, _PAGE)
            for entry in entries:
                record = parse_record_key(entry.key)
                if record is not None:
                    yield record
            after = entries[-1].key

    def _read(self, listed: ListedRecord) -> RecordedRun | None:
        stored = self._objects.get(listed.key)
        if stored is None:
            return None
        try:
            return _load(stored.data, listed.key)
        except StoreDamagedError as err:
            # One that cannot be read does not hide the others.
            return RecordedRun(
                id=listed.id,
                verb=listed.verb,
                target="-",
                state=listed.state,
                by="-",
                machine="-",
                version="-",
                started_at=listed.started_at,
                outcome=Outcome.UNREADABLE,
                error={"summary": err.summary, "detail": err.detail},
            )

    def _with_fate(self, run: RecordedRun) -> RecordedRun:
        """Return a run that says that it runs, with what became of it if it does not."""
        if run.outcome is not Outcome.RUNNING:
            return run
        lease = read_lease(self._objects, f"{layout.RUNS}{run.id}")
        is_gone = lease is None or lease.is_released or is_process_gone(lease.facts)
        if lease is not None and not is_gone:
            beats = self._objects.list(f"{layout.RUNS}{run.id}", limit=1)
            silent_s = lease.promise_s * _LOST_AFTER_PROMISES
            is_gone = bool(beats) and beats[0].modified_at < self._now() - silent_s
        return dataclasses.replace(run, outcome=Outcome.LOST) if is_gone else run

    def _now(self) -> float:
        """Return the time by the clock of the store."""
        if self._clock is None:
            self._clock = (read_store_clock(self._objects), time.monotonic())
        at, read_at = self._clock
        return at + time.monotonic() - read_at

    # --- Events

    def add_events(self, run_id: str, number: int, lines: Iterable[bytes]) -> None:
        """Store some events of a run, behind those that are stored.

        Args:
            run_id: The run.
            number: How many times events of it were stored before.
            lines: The events as JSON, redacted.

        Raises:
            StoreError: They cannot be stored.
        """
        self._objects.put(f"{_EVENTS}{run_id}/{number:08d}", b"\n".join(lines), expect=ANYTHING)

    def events(self, run_id: str, *, after: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the events of a run, each with the object that it is from.

        Args:
            run_id: The run.
            after: The object whose events were seen last.

        Raises:
            StoreError: The store cannot be read.
        """
        while entries := self._objects.list(events_prefix(run_id), after=after, limit=_PAGE):
            for entry in entries:
                stored = self._objects.get(entry.key)
                for line in () if stored is None else stored.data.splitlines():
                    with contextlib.suppress(JsonError):
                        yield entry.key, parse_json(line, LARGE)
            after = entries[-1].key

    # --- Stopping

    def ask_to_stop(self, run: RecordedRun, by: str) -> None:
        """Ask a run to stop cleanly.

        Raises:
            StoreError: It cannot be stored.
        """
        request = orjson.dumps({"by": by, "at": time.time()})
        self._objects.put(control_key(run.id), request, expect=ANYTHING)

    def read_stop_request(self, run_id: str) -> StopRequest | None:
        """Return who asked a run to stop, None where no one did.

        Raises:
            StoreError: The store cannot be read.
        """
        stored = self._objects.get(control_key(run_id))
        if stored is None:
            return None
        try:
            document = parse_json(stored.data)
            return StopRequest(by=str(document["by"]), at=float(document["at"]))
        except (JsonError, KeyError, TypeError, ValueError):
            return StopRequest(by="somebody", at=0.0)

    # --- Retention

    def forget(self, run_id: str) -> None:
        """Remove what only a run that is at work needs."""
        self._objects.delete(control_key(run_id))

    def prune(self, older_than_days: float, *, now: float | None = None) -> int:
        """Remove runs that began longer ago, with their events; return how many.

        Args:
            older_than_days: How long ago.
            now: The time; by the clock of the store when absent.

        Raises:
            StoreError: The store cannot be used.
        """
        after = begin_record_key((time.time() if now is None else now) - older_than_days * _DAY_S)
        if now is None and self._objects.list(RECORDS, after=after, limit=1):
            # Our own clock may be ahead, and history is not worth its word.
            after = begin_record_key(self._now() - older_than_days * _DAY_S)
        count = 0
        while entries := self._objects.list(RECORDS, after=after, limit=_PAGE):
            for entry in entries:
                # Someone else removes what is of others alone.
                with contextlib.suppress(StoreReadOnlyError):
                    self._remove(entry.key)
                    count += 1
            after = entries[-1].key
        return count

    def _remove(self, key: str) -> None:
        record = parse_record_key(key)
        if record is not None:
            self._remove_events(record.id)
            # A service does that itself.
            with contextlib.suppress(StoreReadOnlyError):
                self._objects.delete(layout.run_owner(record.id))
        # Last: a record that is left says which events are.
        self._objects.delete(key)

    def _remove_events(self, run_id: str) -> None:
        self._objects.delete(control_key(run_id))
        while entries := self._objects.list(events_prefix(run_id), limit=_PAGE):
            for entry in entries:
                self._objects.delete(entry.key)


def events_prefix(run_id: str) -> str:
    """Return what the objects with the events of a run begin with."""
    return f"{_EVENTS}{run_id}/"


def control_key(run_id: str) -> str:
    """Return the object that says that a run is to stop."""
    return f"{_CONTROL}{run_id}"


def _fits(one: ListedRecord, state: str, verb: str) -> bool:
    is_state = not state or one.state == state or one.state.startswith(f"{state.rstrip('/')}/")
    return is_state and verb in ("", one.verb)


def _take(listed: Iterator[ListedRecord], count: int) -> list[ListedRecord]:
    return list(itertools.islice(listed, count))


def _load(data: bytes, key: str) -> RecordedRun:
    try:
        document = parse_json(data, LARGE)
        if document["format"] > _FORMAT:
            raise StoreDamagedError(
                f"{key} was written by a newer stackyard.", remedy="Update stackyard on this machine."
            )
        known = {item.name for item in dataclasses.fields(RecordedRun)}
        found = {name: value for name, value in document["run"].items() if name in known}
        return RecordedRun(**{**found, "outcome": Outcome(found["outcome"])})
    except (JsonError, KeyError, TypeError, ValueError, AttributeError) as err:
        raise StoreDamagedError(f"The object {key} is not a valid run record.") from err
