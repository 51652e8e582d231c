"""The inner side of a channel: read an order, do it, say everything, stop when no one listens any more."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import diagnostics, directories, events
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE, SMALL
from stackyard.base.errors import InternalError, InterruptedRunError, StackyardError
from stackyard.base.locks import exclusive
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.clients.objects import open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.operator.delegation.protocol import InnerRequest, Kind, ProtocolRecord, record_line
from stackyard.operator.delegation.relay import as_body, mask
from stackyard.operator.delegation.store_channel import ADDRESS, ChannelObjects
from stackyard.operator.outcome import RunOutcome, Verb
from stackyard.operator.request import VerbRequest
from stackyard.sources.store.identity import read_identity
from stackyard.sources.store.pool import lend_store
from stackyard.state import Actor, layout
from stackyard.state.store_move import move_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["ChannelEnds", "RunVerb", "serve"]

RunVerb = Callable[[Verb, VerbRequest, events.Emit], Coroutine[Any, Any, RunOutcome]]

_CHUNK_BYTES = 256 * 1024
_LONGEST_ORDER_BYTES = 2**30
# How long a last record may take to get out; anyone who should read it may be gone.
_LAST_WORDS_S = 10.0
_LOCK = "delegated.lock"
# How a line with an answer for the store begins; no one else writes such a line.
_ANSWER = b'{"store":'


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEnds:
    """Our ends of the channel, as descriptors, and the secrets that must not leave through it.

    Attributes:
        reading: Where orders come from.
        writing: Where records go to; no one else writes there.
        redactor: Masks the secrets of the site.
        folder: Where the lock is that one run after the other has; none is taken when absent.
    """

    reading: int
    writing: int
    redactor: Redactor = NOTHING_SECRET
    folder: Path | None = None


async def serve(ends: ChannelEnds, run: RunVerb) -> bool:
    """Do one order to the end; return whether it went well.

    The run is stopped, as by Ctrl-C, by a word of the other side, by the end of the input, by silence, and
    when records can no longer be written.

    Raises:
        InvalidInputError: There is no order that can be read.
    """
    given = _Input(ends.reading)
    order = InnerRequest.read(await given.lines.readline())
    gone = asyncio.Event()
    said = _RecordWriter(order.mark, ends, gone)
    given.objects = objects = ChannelObjects(lambda request: said.write(Kind.STORE, request))
    listening = asyncio.create_task(_listen(given.lines, order, gone, objects))
    beating = asyncio.create_task(_send_heartbeats(order, said))
    try:
        offered = None if order.store_key is None else objects
        with _use_store(order, objects):
            return await _until_gone(_work(order, ends, said, run, offered), said, gone)
    finally:
        objects.end()
        listening.cancel()
        beating.cancel()
        await asyncio.wait({listening, beating})
        await asyncio.to_thread(said.close)


@contextlib.contextmanager
def _use_store(order: InnerRequest, objects: ChannelObjects) -> Iterator[None]:
    """Have the run use the store of the outer run, where that offers it."""
    if order.store_key is None:
        yield
        return
    with lend_store(ADDRESS, objects, order.store_key):
        yield


async def _until_gone(
    working: Coroutine[Any, Any, RunOutcome], said: _RecordWriter, gone: asyncio.Event
) -> bool:
    work = asyncio.create_task(working)
    waiting = asyncio.create_task(gone.wait())
    try:
        await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        work.cancel()
        # A run that is asked to stop lets the engine save its state, and that takes as long as it takes.
        await asyncio.wait({work, waiting})
        _write_result(said, work)
    return not work.cancelled() and work.exception() is None and work.result().success


def _write_result(said: _RecordWriter, work: asyncio.Task[RunOutcome]) -> None:
    if work.cancelled():
        said.error(InterruptedRunError("Stopped because the outer run said so, or is gone."))
        return
    err = work.exception()
    if err is None:
        said.write(Kind.RESULT, work.result().as_json())
    else:
        said.error(err if isinstance(err, StackyardError) else InternalError(f"{type(err).__name__}: {err}"))


async def _work(
    order: InnerRequest,
    ends: ChannelEnds,
    said: _RecordWriter,
    run: RunVerb,
    objects: ChannelObjects | None,
) -> RunOutcome:
    def emit(event: events.Event) -> None:
        body = as_body(event)
        if body is not None:
            said.write(Kind.EVENT, body)

    verb, request = Verb(order.verb), VerbRequest.from_json(order.request)
    if ends.folder is None:
        return await run(verb, request, emit)
    path = directories.ensure_private(ends.folder) / _LOCK
    async with exclusive(path, f"process {os.getpid()}", lambda _: emit(_make_waiting_event())):
        if objects is not None:
            await asyncio.to_thread(_bring_own_states, ends.folder, objects, emit)
        return await run(verb, request, emit)


def _bring_own_states(folder: Path, objects: ChannelObjects, emit: events.Emit) -> None:
    """Move what earlier versions kept on this host into the store of the outer run.

    Raises:
        StackyardError: It cannot be moved; nothing was changed.
    """
    if not (folder / "state" / DATABASE).exists():
        return
    with contextlib.closing(open_objects(folder / "state", create=False)) as own:
        identity = read_identity(own)
        if (identity is not None and identity.moved_to) or not own.list(layout.HEADS, limit=1):
            return

        def note(text: str) -> None:
            emit(events.LogLine(level=events.LogLevel.INFO, source="store", text=text))

        move_store(own, objects, ADDRESS, actor=Actor(principal="stackyard"), note=note, wait_s=0.0)


def _make_waiting_event() -> events.Event:
    text = "Waiting for an earlier run on this host, which was cut off, to end."
    return events.LogLine(level=events.LogLevel.INFO, source="stackyard", text=text)


class _Input:
    """The input, read in a thread: whatever it is, a pipe, a socket or a file, that works.

    Answers for the store are given on in that thread: a part of the run that waits for one may hold up the
    loop meanwhile. Everything else is for the loop.

    Args:
        descriptor: Where to read.

    Attributes:
        lines: What is for the loop.
        objects: Who gets the answers, once there is someone.
    """

    def __init__(self, descriptor: int) -> None:
        self.lines = asyncio.StreamReader(limit=_LONGEST_ORDER_BYTES)
        self.objects: ChannelObjects | None = None
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        threading.Thread(target=self._read, name="stackyard-order", daemon=True).start()

    def _read(self) -> None:
        # The loop may be closed before the input is, and then no one wants it any more. An input that breaks
        # has ended, like one that is closed.
        with contextlib.suppress(RuntimeError, OSError):
            try:
                unfinished = bytearray()
                while data := os.read(self._descriptor, _CHUNK_BYTES):
                    unfinished += data
                    *lines, rest = unfinished.split(b"\n") if b"\n" in data else [unfinished]
                    for line in lines:
                        self._take(bytes(line) + b"\n")
                    unfinished = rest
                self._loop.call_soon_threadsafe(self.lines.feed_data, bytes(unfinished))
            finally:
                if self.objects is not None:
                    self.objects.end()
                self._loop.call_soon_threadsafe(self.lines.feed_eof)

    def _take(self, line: bytes) -> None:
        if self.objects is None or not line.startswith(_ANSWER):
            self._loop.call_soon_threadsafe(self.lines.feed_data, line)
            return
        # Something else there is not as agreed: the request that waits is then not answered.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self.objects.answer(parse_json(line, LARGE)["store"])


async def _listen(
    lines: asyncio.StreamReader, order: InnerRequest, gone: asyncio.Event, objects: ChannelObjects
) -> None:
    """Read the input until it ends; a request to stop, or silence, sets `gone`.

    What the run stores while it stops is still answered.
    """
    with contextlib.suppress(TimeoutError, OSError, ValueError):
        while True:
            async with asyncio.timeout(order.silence_s):
                line = await lines.readline()
            if not line.endswith(b"\n"):
                break
            if "stop" in parse_json(line, SMALL):
                gone.set()
    objects.end()
    gone.set()


async def _send_heartbeats(order: InnerRequest, said: _RecordWriter) -> None:
    while True:
        await asyncio.sleep(order.beat_s)
        said.write(Kind.BEAT, {})


class _RecordWriter:
    """Writes records in a thread: an output that no one reads must not keep the run from noticing."""

    def __init__(self, mark: str, ends: ChannelEnds, gone: asyncio.Event) -> None:
        self._mark = mark
        self._descriptor = ends.writing
        self._redactor = ends.redactor
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._number = 0
        self._turn = threading.Lock()
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="stackyard-records", daemon=True)
        self._thread.start()

    def write(self, kind: Kind, body: Mapping[str, Any]) -> None:
        """Write one record, in the order of the calls, with every secret masked; from any thread."""
        # What is stored is for the outer run alone, and has to arrive as it is.
        shown = body if kind is Kind.STORE else mask(body, self._redactor)
        with self._turn:
            self._number += 1
            record = ProtocolRecord(number=self._number, kind=kind, body=shown)
            self._lines.put(record_line(self._mark, record))

    def error(self, error: StackyardError) -> None:
        """Write that the run ended with an error."""
        self.write(Kind.ERROR, diagnostics.describe(error))

    def close(self) -> None:
        """Write the last record, and wait until everything is written or no one reads it."""
        self.write(Kind.END, {"count": self._number + 1})
        self._lines.put(None)
        self._thread.join(_LAST_WORDS_S)

    def _write(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._descriptor, view[:_CHUNK_BYTES]) :]
        except OSError:
            # The loop may be closed by now, and then no one has to be told.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._gone.set)
