"""Around every run: who holds the manifest on its hosts, and what is written down of it from begin to end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import os
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import in_full
from stackyard.base.errors import NotConfirmedError, StackyardError
from stackyard.clients.objects import LeaseLostError, StoreError
from stackyard.clients.objects.base import StoreBusyError
from stackyard.operator.outcome import NodeOutcome, NodeStatus, RunOutcome, Verb
from stackyard.operator.progress import Tracker
from stackyard.operator.record import RunRecord, RunState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from stackyard.operator.record_store import RecordStore

__all__ = ["RunRecorder", "RunSubject", "now", "seed_outcome"]


def now() -> str:
    """Return the time, RFC 3339 in UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubject:
    """What a run is about, for its records.

    Attributes:
        verb: What it does.
        manifest: The manifest, by its name.
        host: The host that was asked for.
        books: Where the record of each host is kept.
        document: The manifest as it is run.
        vm_ids: Ids that were given for nodes.
    """

    verb: Verb
    manifest: str
    host: str
    books: Mapping[str, RecordStore]
    document: Mapping[str, Any] | None = None
    vm_ids: Mapping[str, int] = field(default_factory=dict)


class RunRecorder:
    """A run from its begin to its end.

    Args:
        subject: What it is about.
        emit: Takes the events.
    """

    def __init__(self, subject: RunSubject, emit: events.Emit = events.ignore) -> None:
        self.subject = subject
        self._emit = emit
        self._started_at = now()
        self._began_s = time.monotonic()
        self.before: dict[str, RunRecord | None] = {}
        self._known: dict[str, dict[str, NodeOutcome]] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="run record")
        self._writing: Future[None] | None = None
        self._latest: tuple[NodeOutcome, ...] | None = None

    def get_previous(self, host: str, name: str) -> NodeOutcome | None:
        """Return what the run before knew of a node."""
        return self._known.get(host, {}).get(name)

    @contextlib.asynccontextmanager
    async def hold_hosts(self, wait_s: float = 0.0) -> AsyncIterator[bool]:
        """Hold every host of the manifest for the length of the block; tell whether others were waited for.

        Args:
            wait_s: How long to wait for another run.

        Raises:
            RunBusyError: Another run holds one of them for longer than that.
        """
        where = f"process {os.getpid()} on {socket.gethostname()}"
        holder = f"`{self.subject.verb}` of {where} since {self._started_at}"
        has_waited = False
        async with contextlib.AsyncExitStack() as stack:
            # In one order, so that two runs never hold one each and wait for the other.
            for host in sorted(self.subject.books):
                holding = self.subject.books[host].hold(holder, wait_s=wait_s, emit=self._emit)
                has_waited |= await stack.enter_async_context(holding)
            self.before = {host: book.read() for host, book in self.subject.books.items()}
            self._known = {
                host: {node.name: node for node in record.nodes}
                for host, record in self.before.items()
                if record is not None
            }
            yield has_waited

    @contextlib.asynccontextmanager
    async def record(self, nodes: Iterable[NodeOutcome]) -> AsyncIterator[Tracker]:
        """Write down what becomes of the nodes; the record of a run that is stopped or fails says so."""
        tracker = Tracker(nodes, self._save_later, self._emit)
        # The first one has to be stored: who finds this run cut off knows whose the guests are.
        await asyncio.to_thread(self._save, tracker.nodes)
        # However the run ends, the next run has to know how far it came.
        state, error = RunState.FAILED, "The run ended with a defect of stackyard."
        try:
            yield tracker
            state, error = RunState.DONE, ""
        except NotConfirmedError as err:
            state, error = RunState.STOPPED, err.detail
            raise
        except StackyardError as err:
            error = in_full(err)
            raise
        except asyncio.CancelledError:
            state, error = RunState.STOPPED, "The run was stopped on request."
            raise
        finally:
            tracker.flush()
            self._writer.shutdown()
            self._close(tracker.nodes, state, error or _first_error(tracker.nodes))

    def outcome(self, tracker: Tracker, names: Iterable[str], *, success: bool) -> RunOutcome:
        """Return what became of some nodes."""
        wanted = set(names)
        nodes = tuple(node for node in tracker.nodes if node.name in wanted)
        return RunOutcome(
            verb=self.subject.verb,
            manifest=self.subject.manifest,
            host=self.subject.host,
            success=success,
            started_at=self._started_at,
            duration_s=time.monotonic() - self._began_s,
            nodes=nodes,
            phases=tuple(tracker.phases),
            error=None if success else _first_error(nodes),
            logs=(),
        )

    def _save_later(self, nodes: tuple[NodeOutcome, ...]) -> None:
        """Write down how far the nodes are, in a thread: a store that is slow must not hold up the run."""
        self._latest = nodes
        if self._writing is None or self._writing.done():
            self._writing = self._writer.submit(self._save_latest)

    def _save_latest(self) -> None:
        while (nodes := self._latest) is not None:
            self._latest = None
            # What could not be written is in the next, or at least in the last one.
            with contextlib.suppress(StoreError, StoreBusyError):
                self._save(nodes)

    def _save(self, nodes: tuple[NodeOutcome, ...]) -> None:
        for host, book in self.subject.books.items():
            # A run that lost a record is being stopped; the record is that of another run.
            with contextlib.suppress(LeaseLostError):
                book.write(self._record(host, nodes, RunState.RUNNING))

    def _close(self, nodes: tuple[NodeOutcome, ...], state: RunState, error: str | None) -> None:
        if state is RunState.DONE and error is not None:
            state = RunState.FAILED
        for host, book in self.subject.books.items():
            ended = dataclasses.replace(self._record(host, nodes, state), finished_at=now(), error=error)
            # One that stops has reported why.
            is_stopped = state is RunState.STOPPED
            with contextlib.suppress(LeaseLostError) if is_stopped else contextlib.nullcontext():
                book.write(ended)

    def _record(self, host: str, nodes: tuple[NodeOutcome, ...], state: RunState) -> RunRecord:
        by_name = {node.name: node for node in nodes}
        return RunRecord(
            manifest=self.subject.manifest,
            host=host,
            verb=self.subject.verb,
            state=state,
            started_at=self._started_at,
            pid=os.getpid(),
            document=self.subject.document,
            vm_ids=self.subject.vm_ids,
            nodes=tuple(
                self._merge_previous(host, node) for node in nodes if _host_of(node, by_name) == host
            ),
        )

    def _merge_previous(self, host: str, node: NodeOutcome) -> NodeOutcome:
        """Return what is written down of a node: what was known before, until this run has come to it."""
        is_untouched = node.status is NodeStatus.PENDING
        return self._known[host].get(node.name, node) if is_untouched and host in self._known else node


def seed_outcome(
    fresh: NodeOutcome, before: RunRecord | None, known: NodeOutcome | None, verb: Verb
) -> NodeOutcome:
    """Return a node at the begin of a run, with what the run before knew of it.

    The next `test` also removes what an unfinished `test` created.
    """
    if before is None or known is None or known.status is NodeStatus.DESTROYED:
        return fresh
    is_ours = verb is Verb.TEST and before.verb is Verb.TEST and before.is_unfinished and known.created
    return dataclasses.replace(
        fresh, vm_id=fresh.vm_id or known.vm_id, address=known.address, created=is_ours
    )


def _host_of(node: NodeOutcome, by_name: Mapping[str, NodeOutcome]) -> str:
    while node.depth > 0 and node.host in by_name:
        node = by_name[node.host]
    return node.host


def _first_error(nodes: Iterable[NodeOutcome]) -> str | None:
    listed = list(nodes)
    failed = next((node for node in listed if node.error and node.cause is None), None)
    any_bad = failed or next((node for node in listed if node.error), None)
    return None if any_bad is None else f"{any_bad.name}: {any_bad.error}"
