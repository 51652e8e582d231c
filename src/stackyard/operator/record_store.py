"""Where records are kept: an object for each manifest and host, which one run at a time may write."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import BusyError, InvalidInputError
from stackyard.base.run_stop import stop_run
from stackyard.clients.objects import (
    ABSENT,
    ConflictError,
    LeaseLostError,
    LeaseWatch,
    StoreError,
    acquire,
    read_lease,
    watch,
)
from stackyard.clients.objects.base import StoreBusyError
from stackyard.clients.objects.heartbeat import keep_alive
from stackyard.clients.objects.holders import describe_process
from stackyard.operator.record import RunRecord
from stackyard.path.manifests import KIND
from stackyard.path.target import Target
from stackyard.state import layout
from stackyard.state.runs import PROMISE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from stackyard.clients.objects import Expect, Lease, Objects, Tag
    from stackyard.clients.objects.heartbeat import Heartbeat
    from stackyard.sources.store import ChosenStore

__all__ = ["RecordBrokenError", "RecordStore", "RunBusyError"]

# Between two looks at a lease whose holder says nothing.
_LOOK_EVERY_S = 1.0


class RunBusyError(BusyError):
    """Another run works on the same manifest and host."""

    code = "E-OPERATOR-BUSY"
    summary = "Another run works on this manifest and host"
    default_remedy = "Wait for the other run to end, then run the command again."


class RecordBrokenError(InvalidInputError):
    """The record of a manifest on a host cannot be read."""

    code = "E-OPERATOR-RECORD"
    summary = "A record is not readable"
    default_remedy = "`stackyard store show` names the object. Remove it: what is there is found by its tag."


class RecordStore:
    """The record of one manifest on one host.

    Args:
        store: Where what runs leave is kept.
        manifest: The manifest.
        host: The host.
    """

    def __init__(self, store: ChosenStore, manifest: str, host: str) -> None:
        self.manifest = manifest
        self.host = host
        self._store = store
        state = Target(kind=KIND, name=manifest, node=host).state_name
        self.key = layout.operator(state)
        self._lock_key = layout.operator_lock(state)
        self._heartbeat: Heartbeat | None = None
        # What the record was when we last read or wrote it.
        self._known: Expect = ABSENT

    @contextlib.asynccontextmanager
    async def hold(
        self,
        holder: str,
        *,
        wait_s: float = 0.0,
        emit: events.Emit = events.ignore,
        on_loss: Callable[[str], None] | None = None,
    ) -> AsyncIterator[bool]:
        """Hold the record for the length of the block, and tell whether another run had to be waited for.

        A holder that was killed is noticed: at once on the same machine, else after a silence.

        Args:
            holder: Who holds it, for other runs.
            wait_s: How long to wait for another run.
            emit: Told for whom is waited.
            on_loss: Told why others may hold the record; without it, the run stops as Ctrl-C does.

        Raises:
            RunBusyError: Another run holds it for longer than that.
            StoreError: The store cannot be used.
        """
        objects = await asyncio.to_thread(self._store.open)
        with contextlib.closing(objects):
            lease, has_waited = await self._acquire(objects, holder, wait_s, emit)
            try:
                async with keep_alive(lease, on_loss or functools.partial(stop_run, emit=emit)) as heartbeat:
                    self._heartbeat = heartbeat
                    yield has_waited
            finally:
                self._heartbeat = None
                # One that cannot be given back is taken over once it was silent for long enough.
                with contextlib.suppress(StoreError, StoreBusyError):
                    await asyncio.to_thread(lease.release)

    async def _acquire(
        self, objects: Objects, holder: str, wait_s: float, emit: events.Emit
    ) -> tuple[Lease, bool]:
        seen = LeaseWatch()
        until, has_waited = time.monotonic() + wait_s, False
        with watch(objects, self._lock_key) as changes:
            while True:
                lease = await asyncio.to_thread(
                    acquire,
                    objects,
                    self._lock_key,
                    owner=holder,
                    promise_s=PROMISE_S,
                    facts=describe_process(),
                    watch=seen,
                )
                if lease is not None:
                    return lease, has_waited
                known = await asyncio.to_thread(read_lease, objects, self._lock_key)
                who = "another process" if known is None else known.owner
                left_s = until - time.monotonic()
                if left_s <= 0:
                    raise RunBusyError(f"{self.manifest} on {self.host} is held by {who}.")
                if not has_waited:
                    waiting_for = f"{self.manifest} on {self.host}, held by {who}"
                    emit(events.StepWaiting(step=f"manifest {self.manifest}", waiting_for=waiting_for))
                has_waited = True
                await asyncio.to_thread(changes.wait, min(left_s, _LOOK_EVERY_S))

    def read(self) -> RunRecord | None:
        """Return the record, nothing where there is none yet.

        Raises:
            RecordBrokenError: It is something else.
            StoreError: The store cannot be read.
        """
        with contextlib.closing(self._store.read()) as objects:
            stored = objects.get(self.key)
        self._known = ABSENT if stored is None else stored.tag
        return None if stored is None else decode_record(stored.data, self.key)

    def write(self, record: RunRecord) -> None:
        """Replace the record that was read or written last.

        Raises:
            LeaseLostError: Another run may hold the record, or has written it.
            StoreError: It cannot be stored.
        """
        reason = None if self._heartbeat is None else self._heartbeat.explain_loss()
        if reason is not None:
            raise LeaseLostError(reason)
        data = encode_record(record)
        with contextlib.closing(self._store.open()) as objects:
            try:
                self._known = objects.put(self.key, data, expect=self._known)
            except ConflictError as err:
                self._known = self._replace(objects, data, err)

    def _replace(self, objects: Objects, data: bytes, err: ConflictError) -> Tag:
        """Write over what another run left in the record, if the lease is ours.

        The answer to our own last write may be lost, or a run that lost the lease wrote once more.
        """
        stored = objects.get(self.key)
        if self._heartbeat is not None and self._heartbeat.beat():
            with contextlib.suppress(ConflictError):
                return objects.put(self.key, data, expect=ABSENT if stored is None else stored.tag)
        raise LeaseLostError(f"Another run has written {self.key}.") from err


def encode_record(record: RunRecord) -> bytes:
    """Return a record as it is stored."""
    return orjson.dumps(record.as_json(), option=orjson.OPT_INDENT_2) + b"\n"


def decode_record(data: bytes, where: str) -> RunRecord:
    """Return a record that was stored.

    Raises:
        RecordBrokenError: It is something else.
    """
    try:
        return RunRecord.from_json(parse_json(data))
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        raise RecordBrokenError(f"{where} is not a record: {err}.") from err
