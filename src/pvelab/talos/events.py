"""The events of a Talos machine, as `MachineService/Events` streams them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
from typing import TYPE_CHECKING, Any

from stackyard.talosapi.messages import EVENT_TYPE_PREFIX, STAGES, pb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["EventLog"]

_MOST = 256
_FLUSH_S = 2.0


class EventLog:
    """The last events of one boot, and those that come."""

    def __init__(self) -> None:
        self._events: collections.deque[Any] = collections.deque(maxlen=_MOST)
        self._numbers = itertools.count(1)
        self._added = asyncio.Event()
        # What each stream has sent so far, and what tells that one has sent more.
        self._sent: dict[object, str] = {}
        self._progress = asyncio.Event()

    def add(self, name: str, payload: Any) -> None:
        """Add an event."""
        data = pb.Any(type_url=f"{EVENT_TYPE_PREFIX}machine.{name}", value=payload.SerializeToString())
        self._events.append(pb.Event(data=data, id=f"{next(self._numbers):020d}"))
        self._added.set()
        self._added = asyncio.Event()

    def add_status(self, stage: str, unmet: list[tuple[str, str]]) -> None:
        """Tell that a stage began."""
        status = pb.MachineStatusEvent.MachineStatus(
            ready=not unmet,
            unmet_conditions=[pb.UnmetCondition(name=name, reason=text) for name, text in unmet],
        )
        self.add("MachineStatusEvent", pb.MachineStatusEvent(stage=STAGES.index(stage), status=status))

    def add_error(self, sequence: str, text: str) -> None:
        """Tell that a sequence failed."""
        error = pb.Error(code=1, message=text)
        self.add("SequenceEvent", pb.SequenceEvent(sequence=sequence, action=0, error=error))

    def add_task(self, name: str) -> None:
        """Tell that a task of a sequence began and ended."""
        for action in (pb.TaskEvent.Action.START, pb.TaskEvent.Action.STOP):
            self.add("TaskEvent", pb.TaskEvent(task=name, action=action))

    async def flush(self) -> None:
        """Wait a moment until all streams have sent what there is."""
        last = self._events[-1].id if self._events else ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FLUSH_S):
                while any(sent < last for sent in self._sent.values()):
                    self._progress.clear()
                    await self._progress.wait()

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Give the last events that a request asks for, and all that come."""
        past = list(self._events)
        if request.tail_id:
            past = [event for event in past if event.id > request.tail_id]
        elif request.tail_events >= 0:
            past = past[len(past) - min(len(past), request.tail_events) :]
        last = self._events[-1].id if self._events else ""
        for event in past:
            yield event
        me = object()
        self._sent[me] = last
        try:
            while True:
                added = self._added
                for event in [one for one in self._events if one.id > self._sent[me]]:
                    yield event
                    self._sent[me] = event.id
                    self._progress.set()
                await added.wait()
        finally:
            del self._sent[me]
            self._progress.set()
