"""Around a run: its record is written when it begins and when it ends, and its events while it works.

A record never stops a run: what cannot be written is left out. Whoever asks the run to stop, on any machine,
is heard here.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import getpass
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

import stackyard
from stackyard.base import events
from stackyard.base.diagnostics import describe
from stackyard.base.directories import find_git_top
from stackyard.base.errors import FileError, NotConfirmedError, StackyardError
from stackyard.base.run_stop import stop_run
from stackyard.clients.objects import ConflictError, StoreError
from stackyard.clients.objects.base import StoreBusyError
from stackyard.guard import GuardRefusedError
from stackyard.path.run_state import state_version
from stackyard.path.ssh_files import push_known_hosts
from stackyard.state import StateService
from stackyard.state.run_records import Outcome, RecordedRun, RunRecords
from stackyard.state.runs import hold_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from stackyard.base.redaction import Redactor
    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore

__all__ = ["Recording", "RunSubject", "recorded"]

# How long runs are remembered, unless STACKYARD_RUNS_DAYS says otherwise.
_KEPT_DAYS = 90.0
_DAYS_VARIABLE = "STACKYARD_RUNS_DAYS"
# How often events are stored: a short run is followed closely, a long one leaves fewer objects.
_FLUSH_EVERY_S = 0.5
_SLOWEST_FLUSH_S = 5.0
_SLOWER_BY = 60.0
_FAILURES = (StoreError, StoreBusyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubject:
    """What a run is about.

    Attributes:
        verb: What it does.
        target: To what.
        state: The state of that.
        store: Where the record is kept.
        redactor: Masks the secrets of the input.
        source: The folder of the input, where it has one.
        commit: The commit of the input, where the caller knows it.
    """

    verb: str
    target: str
    state: str
    store: ChosenStore
    redactor: Redactor
    source: Path | None = None
    commit: str | None = None


class Recording:
    """A run that is being recorded.

    Args:
        run: The record as it begins.
        objects: The store.
        subject: What the run is about.
        emit: Takes the events too.
    """

    def __init__(self, run: RecordedRun, objects: Objects, subject: RunSubject, emit: events.Emit) -> None:
        self.run = run
        self._records = RunRecords(objects)
        self._subject = subject
        self._redactor = subject.redactor
        self._emit = emit
        self._lines: list[bytes] = []
        self._lock = threading.Lock()
        self._seen = 0
        self._stored = 0
        self._ended = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._listening = threading.Thread(target=self._listen, name="run record", daemon=True)

    def mask_with(self, redactor: Redactor) -> None:
        """Mask the secrets of an input that was read again."""
        self._redactor = redactor

    @property
    def store(self) -> ChosenStore:
        """Where the record is kept."""
        return self._subject.store

    def emit(self, event: events.Event) -> None:
        """Pass an event on, and keep it."""
        self._emit(event)
        if isinstance(event, events.PlanCounted):
            counted = {"add": event.add, "change": event.change, "remove": event.remove}
            self.change(counts={**self.run.counts, event.operation: counted})
        with self._lock:
            self._seen += 1
            at = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            line = orjson.dumps(events.record(event, seq=self._seen, at=at), default=str).decode()
            self._lines.append(self._redactor(line).encode())

    def change(self, **values: Any) -> None:
        """Put something into the record; it is written when the run ends."""
        self.run = dataclasses.replace(self.run, **values)

    def note_failures(self, errors: Sequence[StackyardError]) -> None:
        """Record that the run failed, if there are errors; for a run that reports them and raises none."""
        if errors:
            detail = " ".join(error.detail for error in errors)
            self.change(outcome=Outcome.FAILED, error={**describe(errors[0]), "detail": detail})

    def write(self) -> None:
        """Write the record.

        Raises:
            StoreError: It cannot be stored.
        """
        self._records.write(self.run, self._redactor)

    def flush(self) -> bool:
        """Store the events that came since; return whether the store took them."""
        with self._lock:
            lines, self._lines = self._lines, []
        if not lines:
            return True
        try:
            self._records.add_events(self.run.id, self._stored, lines)
        except _FAILURES:
            # They go with the next.
            with self._lock:
                self._lines = [*lines, *self._lines]
            return False
        self._stored += 1
        return True

    def end(self) -> None:
        """Store what is left, and stop listening."""
        self._ended.set()
        if self._listening.is_alive():
            self._listening.join()
        if not self.flush():
            # A store that is away was waited for once; each further write would wait as long.
            return
        with contextlib.suppress(*_FAILURES):
            self.write()
            self._records.forget(self.run.id)
            self._records.prune(_kept_days())

    def begin(self) -> None:
        """Listen from now on, until the end."""
        self._listening.start()

    def stop(self, reason: str) -> None:
        """Stop the run as Ctrl-C does, unless it has ended."""
        if not self._ended.is_set():
            stop_run(reason, self.emit)

    def _listen(self) -> None:
        """Store events while the run works, and stop it cleanly when someone asks for that."""
        is_asked, began_s, pause_s = False, time.monotonic(), _FLUSH_EVERY_S
        while not self._ended.wait(pause_s):
            pause_s = min(_SLOWEST_FLUSH_S, _FLUSH_EVERY_S + (time.monotonic() - began_s) / _SLOWER_BY)
            self.flush()
            # Events are stored at this pace in any case: a look costs less than a watch of its own.
            with contextlib.suppress(*_FAILURES, RuntimeError):
                found = None if is_asked else self._records.read_stop_request(self.run.id)
                if found is not None:
                    is_asked = True
                    reason = f"{found.by} asked this run to stop."
                    self._loop.call_soon_threadsafe(self.stop, reason)


@contextlib.asynccontextmanager
async def recorded(subject: RunSubject, emit: events.Emit) -> AsyncIterator[Recording]:
    """Record a run for the length of the block.

    Args:
        subject: What it is about.
        emit: Takes the events that are given to the recording.

    Raises:
        StoreMovedError: Everything in the store was moved to another one, or is being moved.
        StoreError: The store cannot be used.
    """
    objects = await asyncio.to_thread(subject.store.open)
    with contextlib.closing(objects), contextlib.ExitStack() as stack:
        begun = _begin(subject)
        recording = Recording(begun, objects, subject, emit)
        owner = f"{begun.by}@{begun.machine}"
        async with hold_run(objects, begun.id, owner=owner, on_loss=recording.stop):
            await asyncio.to_thread(subject.store.require_here, objects)
            # From here on a move of the store waits for this run.
            stack.enter_context(subject.store.at_work())
            before = await asyncio.to_thread(_version, objects, subject.state)
            recording.change(before=before, after=before)
            await asyncio.to_thread(recording.write)
            committing = asyncio.create_task(_commit(subject))
            recording.begin()
            try:
                yield recording
                if recording.run.outcome is Outcome.RUNNING:
                    recording.change(outcome=Outcome.DONE)
            except BaseException as err:
                recording.change(**_describe_end(err))
                raise
            finally:
                await _close(recording, objects, committing)


def _describe_end(err: BaseException) -> dict[str, Any]:
    """Return what is recorded of a run that ended with an error."""
    match err:
        case GuardRefusedError():
            return {"outcome": Outcome.REFUSED, "error": describe(err)}
        case NotConfirmedError():
            # Nothing was done.
            return {"outcome": Outcome.STOPPED, "error": describe(err)}
        case StackyardError():
            return {"outcome": Outcome.FAILED, "error": describe(err)}
        case asyncio.CancelledError():
            return {"outcome": Outcome.STOPPED}
        case _:
            return {"outcome": Outcome.FAILED, "error": {"detail": type(err).__name__}}


async def _close(recording: Recording, objects: Objects, committing: asyncio.Task[str]) -> None:
    def finish() -> None:
        # What a run did does not become a failure because something of its record cannot be written.
        with contextlib.suppress(*_FAILURES, FileError, ConflictError):
            recording.change(after=_version(objects, recording.run.state))
            push_known_hosts(recording.store, objects)
        recording.end()

    recording.change(finished_at=time.time())
    try:
        recording.change(commit=await committing)
        await asyncio.to_thread(finish)
    except asyncio.CancelledError:
        # A second Ctrl-C: what is known is written all the same.
        recording.end()
        raise


def _begin(subject: RunSubject) -> RecordedRun:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        user = str(os.getuid())
    return RecordedRun(
        id=uuid.uuid4().hex[:12],
        verb=subject.verb,
        target=subject.target,
        state=subject.state,
        by=user,
        machine=socket.gethostname(),
        version=stackyard.__version__,
        started_at=time.time(),
    )


def _version(objects: Objects, state: str) -> str:
    return state_version(StateService(objects), state)


async def _commit(subject: RunSubject) -> str:
    """Return the commit of the input; empty where it is not in git, or git is not there."""
    if subject.commit is not None:
        return subject.commit
    folder = subject.source
    if folder is None or find_git_top(folder) is None:
        return ""
    from stackyard.clients.git.run import git_command, run_git  # lazy: only where the input is in git

    try:
        describing = ("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
        return (await run_git(git_command(describing, folder))).strip()
    except StackyardError:
        return ""


def _kept_days() -> float:
    try:
        return max(1.0, float(os.environ.get(_DAYS_VARIABLE, "")))
    except ValueError:
        return _KEPT_DAYS
