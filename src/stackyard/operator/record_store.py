"""Where records are kept: an object for each manifest and host, which one run at a time may write."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import orjson

from stackyard.base import events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import BusyError, InvalidInputError
from stackyard.clients.objects import ANYTHING, LeaseWatch, StoreError, acquire, read_lease, watch
from stackyard.clients.objects.base import StoreBusyError
from stackyard.clients.objects.heartbeat import Heartbeat
from stackyard.clients.objects.holders import describe_process
from stackyard.operator.record import RunRecord
from stackyard.path.manifests import KIND
from stackyard.path.target import Target
from stackyard.state import layout
from stackyard.state.runs import PROMISE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.objects import Lease, Objects
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

    @contextlib.asynccontextmanager
    async def hold(
        self, holder: str, *, wait_s: float = 0.0, emit: events.Emit = events.ignore
    ) -> AsyncIterator[bool]:
        """Hold the record for the length of the block, and tell whether another run had to be waited for.

        A holder that was killed is noticed: at once on the same machine, else after a silence.

        Args:
            holder: Who holds it, for other runs.
            wait_s: How long to wait for another run.
            emit: Told for whom is waited.

        Raises:
            RunBusyError: Another run holds it for longer than that.
            StoreError: The store cannot be used.
        """
        objects = await asyncio.to_thread(self._store.open)
        with contextlib.closing(objects):
            lease, has_waited = await self._acquire(objects, holder, wait_s, emit)
            heartbeat = Heartbeat(lease)
            try:
                yield has_waited
            finally:
                await asyncio.to_thread(heartbeat.stop)
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
        return None if stored is None else decode_record(stored.data, self.key)

    def write(self, record: RunRecord) -> None:
        """Write the record so that it is the old one or the new one, whatever happens.

        Raises:
            StoreError: It cannot be stored.
        """
        with contextlib.closing(self._store.open()) as objects:
            # Only the run that holds it writes it.
            objects.put(self.key, encode_record(record), expect=ANYTHING)


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
