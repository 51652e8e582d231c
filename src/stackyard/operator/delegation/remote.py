"""The outer side of a channel: give an order to the stackyard of an inner host, and hear it to the end."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.base.redaction import NOTHING_SECRET
from stackyard.operator.delegation.protocol import (
    BEAT,
    STOP,
    BrokenRecordsError,
    InnerRequest,
    Kind,
    LostRecordsError,
    ProtocolRecord,
    Records,
    RemoteRunError,
)
from stackyard.operator.delegation.relay import mask, parse_event
from stackyard.operator.delegation.store_channel import StoreAnswers
from stackyard.operator.outcome import RunOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Channel", "DelegationLimits", "DelegationTimeoutError", "run_order"]


class Channel(Protocol):
    """Leads to the inner side: what it reads, what it writes, and what it says aside."""

    async def write(self, data: bytes) -> None:
        """Write to its input; an error of ours when no one reads it."""
        ...

    async def read(self) -> bytes:
        """Return more of its output; nothing at the end."""
        ...

    async def read_aside(self) -> bytes:
        """Return more of its other output; nothing at the end."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


# How long to wait for the rest of the other output of a program that has ended.
_LAST_WORDS_S = 2.0
_LONGEST_LINE_BYTES = 64 * 1024
# How much of a line is quoted in an error, and of a text of an error.
_QUOTED_CHARACTERS = 500
_LONGEST_TEXT = 4000
_MOST_FINDINGS = 50
# What ten thousand nodes have to say is less.
_MOST_BYTES = 2**30


class DelegationTimeoutError(StackyardError):
    """A run on an inner host took longer than all of its nodes together have reason to, and was stopped."""

    code = "E-DELEGATION-TIMEOUT"
    summary = "A run on an inner host took too long"
    default_remedy = "Look at what it waited for, or give it more time with `timeout_buffer` of the manifest."


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationLimits:
    """How long to wait.

    Attributes:
        whole_s: For the whole run.
        silence_s: Without a word of the other side, which says something every few seconds.
        stopping_s: For a run that was asked to stop: its engine saves its state.
    """

    whole_s: float
    silence_s: float = 60.0
    stopping_s: float = 120.0


async def run_order(
    channel: Channel,
    order: InnerRequest,
    *,
    host: str,
    limits: DelegationLimits,
    emit: events.Emit,
    redact: Callable[[str], str] = NOTHING_SECRET,
) -> RunOutcome:
    """Give an order and return what became of it.

    Args:
        channel: Leads to the inner side.
        order: What to do.
        host: The name of the inner host, which its events get.
        limits: How long to wait.
        emit: Takes the events as they come.
        redact: Masks the secrets of the outer run in everything that the inner side says.

    Raises:
        LostRecordsError: The connection ended, or fell silent, before everything was said. The inner side
            ends its run by itself.
        BrokenRecordsError: What came makes no sense.
        RemoteRunError: The run there ended with an error.
        DelegationTimeoutError: It took too long; it was stopped.
    """
    answers = None if order.offered is None else StoreAnswers(order.offered, channel.write)
    heard = _ReceivedRecords(order, host, emit, redact, answers)
    talking = asyncio.create_task(_talk(channel, order))
    try:
        async with asyncio.timeout(limits.whole_s) as deadline:
            await heard.listen(channel, limits.silence_s)
    except TimeoutError as err:
        if not deadline.expired():
            raise
        await _stop(channel, heard, limits)
        text = f"The run on {host} did not end within {limits.whole_s:.0f} s and was stopped."
        raise DelegationTimeoutError(text) from err
    except asyncio.CancelledError:
        await _stop(channel, heard, limits)
        raise
    finally:
        talking.cancel()
        await asyncio.wait({talking})
        if answers is not None:
            await answers.close()
        await channel.close()
    return heard.outcome()


async def _talk(channel: Channel, order: InnerRequest) -> None:
    """Give the order, then say every few seconds that we are there; anyone who listens notices a failure."""
    with contextlib.suppress(StackyardError):
        await channel.write(order.line())
        while True:
            await asyncio.sleep(order.beat_s)
            await channel.write(BEAT)


async def _stop(channel: Channel, heard: _ReceivedRecords, limits: DelegationLimits) -> None:
    """Have the run stopped and wait until it has; a second request to stop does not wait."""
    with contextlib.suppress(StackyardError, TimeoutError):
        async with asyncio.timeout(limits.stopping_s):
            await channel.write(STOP)
            await heard.listen(channel, limits.silence_s)


class _ReceivedRecords:
    """Everything that the inner side has said."""

    def __init__(
        self,
        order: InnerRequest,
        host: str,
        emit: events.Emit,
        redact: Callable[[str], str],
        answers: StoreAnswers | None,
    ) -> None:
        self._records = Records(order.mark)
        self._verb = order.verb
        self._redact = redact
        self._answers = answers
        self._came = 0
        self._host = host
        self._emit = emit
        self._result: Mapping[str, Any] | None = None
        self._error: Mapping[str, Any] | None = None
        self._stray: list[str] = []

    async def listen(self, channel: Channel, silence_s: float) -> None:
        """Take records until the last one."""
        aside = asyncio.create_task(self._listen_aside(channel))
        try:
            while not self._records.is_complete:
                for part in self._records.feed(await self._next(channel, silence_s, aside)):
                    self._take(part)
        finally:
            aside.cancel()
            await asyncio.wait({aside})

    async def _next(self, channel: Channel, silence_s: float, aside: asyncio.Task[None]) -> bytes:
        try:
            async with asyncio.timeout(silence_s):
                data = await channel.read()
        except TimeoutError as err:
            raise LostRecordsError(f"{self._host} said nothing for {silence_s:.0f} s.") from err
        self._came += len(data)
        if self._came > _MOST_BYTES:
            raise BrokenRecordsError(f"{self._host} said more than {_MOST_BYTES >> 20} MiB.")
        if data:
            return data
        # What it said aside last is most often why.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await asyncio.wait({aside})
        try:
            for line in self._records.close():
                self._take(line)
        except LostRecordsError as err:
            said = f" It said: {' / '.join(self._stray)}" if self._stray else ""
            raise LostRecordsError(f"{self._host}: {err.detail}{said}") from err
        raise LostRecordsError(f"{self._host} ended the connection.")

    async def _listen_aside(self, channel: Channel) -> None:
        """Pass on lines of the other output, where programs say what no one expected."""
        unfinished = b""
        while self._came <= _MOST_BYTES and (data := await channel.read_aside()):
            self._came += len(data)
            *lines, unfinished = (unfinished + data).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace").rstrip("\r"))
            # A line without end is cut: it must not fill the memory.
            unfinished = unfinished[-_LONGEST_LINE_BYTES:]
        if unfinished:
            self._take(unfinished.decode(errors="replace"))

    def _take(self, part: ProtocolRecord | str) -> None:
        if isinstance(part, str):
            text = self._redact(part[:_LONGEST_LINE_BYTES])
            self._stray = [*self._stray[-9:], text[:_QUOTED_CHARACTERS]]
            self._emit(events.LogLine(level=events.LogLevel.INFO, source=self._host, text=text))
            return
        if part.kind is Kind.STORE:
            if self._answers is not None:
                self._answers.take(part.body)
            return
        # It masks its own secrets; whether it does with ours, which it may have seen, is not left to it.
        body = mask(part.body, self._redact)
        if part.kind is Kind.EVENT:
            event = parse_event(body, self._host)
            if event is not None:
                self._emit(event)
        elif part.kind is Kind.RESULT:
            self._result = body
        elif part.kind is Kind.ERROR:
            self._error = body

    def outcome(self) -> RunOutcome:
        """Return what became of the run."""
        if self._error is not None:
            raise _as_error(self._host, self._error)
        if self._result is None:
            raise BrokenRecordsError(f"{self._host} ended its run without a result.")
        try:
            outcome = RunOutcome.from_json(self._result)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as err:
            text = str(err)[:_QUOTED_CHARACTERS]
            raise BrokenRecordsError(f"The result of {self._host} cannot be read: {text}.") from err
        if outcome.verb.value != self._verb:
            raise BrokenRecordsError(f"{self._host} was asked to {self._verb}, and did {outcome.verb.value}.")
        return outcome


def _as_error(host: str, body: Mapping[str, Any]) -> RemoteRunError:
    listed = body.get("diagnostics")
    found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    findings = "".join(
        f"\n- {_text(one, 'summary')}: {_text(one, 'detail')}" for one in found[:_MOST_FINDINGS]
    )
    said = f"{_text(body, 'summary')} ({_text(body, 'code')}): {_text(body, 'detail')}"
    # What another machine advises is shown as its words, not as ours.
    said_remedy = _text(body, "remedy")
    remedy = f"{host} says: {said_remedy}" if said_remedy else RemoteRunError.default_remedy
    return RemoteRunError(f"On {host}: {said}{findings}"[: 2 * _LONGEST_TEXT], remedy=remedy)


def _text(body: Mapping[str, Any], name: str) -> str:
    """Return a text of an error, of a length that fits on a screen."""
    return str(body.get(name) or "")[:_LONGEST_TEXT]
