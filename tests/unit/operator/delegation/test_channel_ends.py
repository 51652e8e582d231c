"""Both ends of a channel over real pipes: the order is done, everything is said, and both stop together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from stackyard.base import events
from stackyard.base.errors import InvalidInputError
from stackyard.base.redaction import Redactor
from stackyard.clients.ssh.failures import SshError
from stackyard.operator.delegation.protocol import InnerRequest, LostRecordsError, RemoteRunError
from stackyard.operator.delegation.remote import DelegationLimits, DelegationTimeoutError, run_order
from stackyard.operator.delegation.serving_side import ChannelEnds, RunVerb, serve
from stackyard.operator.outcome import NodeOutcome, NodeStatus, RunOutcome, Verb
from stackyard.operator.request import VerbRequest

PATIENCE_S = 60.0
SECRET = "very-secret-value"


class Pipes:
    """Our end of a channel whose other end is in this process too."""

    def __init__(self) -> None:
        self.order, self._to = os.pipe()
        self._from, self.records = os.pipe()
        self._open = {self._to, self._from}
        self._pending: asyncio.Future[bytes] | None = None

    async def write(self, data: bytes) -> None:
        if self._to not in self._open:
            raise SshError("gone")
        await asyncio.to_thread(self._write, data)

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._to, data[:65536]) :]

    async def read(self) -> bytes:
        # A read that is given up goes on in its thread: what it reads is for the next who asks.
        if self._pending is None:
            self._pending = asyncio.ensure_future(asyncio.to_thread(os.read, self._from, 65536))
        data = await asyncio.shield(self._pending)
        self._pending = None
        return data

    async def read_aside(self) -> bytes:
        return b""

    async def close(self) -> None:
        self.end_input()

    def end_input(self) -> None:
        if self._to in self._open:
            self._open.discard(self._to)
            os.close(self._to)

    def shut(self) -> None:
        self.end_input()
        # They have come to the end of their input; a number that one still reads must not become another's.
        for thread in threading.enumerate():
            if thread.name == "stackyard-order":
                thread.join(PATIENCE_S)
        for number in (self.order, self._from):
            os.close(number)


def outcome(request: VerbRequest, *, success: bool = True) -> RunOutcome:
    nodes = (
        NodeOutcome(name="leaf", status=NodeStatus.COMPLETED, host=str(request.host), address="10.0.0.9"),
    )
    return RunOutcome(
        verb=Verb.CREATE,
        manifest="m",
        host=str(request.host),
        success=success,
        started_at="2026-01-01T00:00:00Z",
        duration_s=1.0,
        nodes=nodes,
        error=None if success else f"it holds {SECRET}",
    )


@contextlib.asynccontextmanager
async def served(run: RunVerb, folder: Path | None = None) -> AsyncIterator[tuple[Pipes, asyncio.Task[bool]]]:
    pipes = Pipes()
    ends = ChannelEnds(reading=pipes.order, writing=pipes.records, redactor=Redactor([SECRET]), folder=folder)

    async def to_the_end() -> bool:
        try:
            return await serve(ends, run)
        finally:
            os.close(pipes.records)

    task = asyncio.create_task(to_the_end())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield pipes, task
            pipes.end_input()
            await asyncio.wait({task})
    finally:
        task.cancel()
        await asyncio.wait({task})
        pipes.shut()


def order(**request: Any) -> InnerRequest:
    return InnerRequest(verb="create", request=VerbRequest(host="inner", **request).as_json(), beat_s=0.05)


LIMITS = DelegationLimits(whole_s=PATIENCE_S, stopping_s=PATIENCE_S)


async def test_an_order_of_five_megabytes_is_done_and_every_event_comes_back_in_order_without_secrets() -> (
    None
):
    text = "m" * 5_000_000

    async def run(verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        assert (verb, request.text) == (Verb.CREATE, text)
        with events.step(emit, "plan", "Planning") as step:
            for number in range(500):
                step.log(f"{number} {SECRET}", events.LogLevel.WARNING)
        return outcome(request)

    seen: list[events.Event] = []
    async with served(run) as (pipes, task):
        ended = await run_order(pipes, order(text=text), host="inner", limits=LIMITS, emit=seen.append)
        assert ended == outcome(VerbRequest(host="inner"))
    assert await task is True
    first, *lines, last = seen
    assert first == events.StepStarted(step="inner/plan", title="inner: Planning")
    assert isinstance(last, events.StepFinished)
    assert last.outcome is events.Outcome.DONE
    assert [line.text for line in lines if isinstance(line, events.LogLine)] == [
        f"{number} ********" for number in range(500)
    ]
    assert all(isinstance(line, events.LogLine) and line.level is events.LogLevel.WARNING for line in lines)


async def test_an_error_of_the_inner_run_is_quoted_with_its_code_and_without_secrets() -> None:
    async def run(verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        raise InvalidInputError(f"The preset '{SECRET}' is not there.")

    async with served(run) as (pipes, _):
        with pytest.raises(RemoteRunError, match="E-INVALID") as caught:
            await run_order(pipes, order(), host="inner", limits=LIMITS, emit=events.ignore)
        assert "inner" in caught.value.detail
        assert SECRET not in caught.value.detail


async def test_a_run_that_failed_is_an_outcome_and_its_secrets_are_masked() -> None:
    async def run(verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        return outcome(request, success=False)

    async with served(run) as (pipes, task):
        ended = await run_order(pipes, order(), host="inner", limits=LIMITS, emit=events.ignore)
        assert (ended.success, ended.error) == (False, "it holds ********")
    assert await task is False


class Endless:
    """A run that goes on until it is stopped, and takes a moment to save what it has."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.saved = False

    async def __call__(self, verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            self.saved = True
        raise AssertionError


async def test_cancelling_the_outer_run_stops_the_inner_one_and_waits_for_what_it_saves() -> None:
    run = Endless()
    async with served(run) as (pipes, _):
        outer = asyncio.create_task(
            run_order(pipes, order(), host="inner", limits=LIMITS, emit=events.ignore)
        )
        await run.begun.wait()
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert run.saved


async def test_a_run_that_takes_too_long_is_stopped() -> None:
    run = Endless()
    async with served(run) as (pipes, _):
        limits = DelegationLimits(whole_s=2.0, stopping_s=PATIENCE_S)
        with pytest.raises(DelegationTimeoutError):
            await run_order(pipes, order(), host="inner", limits=limits, emit=events.ignore)
        assert run.saved


def _closes_input(pipes: Pipes) -> None:
    pipes.end_input()


def _says_nothing_more(pipes: Pipes) -> None:
    del pipes


@pytest.mark.parametrize("lose", [_closes_input, _says_nothing_more])
async def test_an_inner_run_ends_by_itself_when_nobody_is_there_any_more(
    lose: Callable[[Pipes], None],
) -> None:
    run = Endless()
    async with served(run) as (pipes, task):
        silent = InnerRequest(
            verb="create", request=VerbRequest(host="inner").as_json(), beat_s=0.05, silence_s=0.3
        )
        await pipes.write(silent.line())
        await run.begun.wait()
        lose(pipes)
        assert await task is False
        assert run.saved


async def test_a_connection_that_ends_in_the_middle_is_lost_and_not_a_success() -> None:
    pipes = Pipes()
    try:
        os.close(pipes.records)
        with pytest.raises(LostRecordsError):
            await run_order(pipes, order(), host="inner", limits=LIMITS, emit=events.ignore)
    finally:
        pipes.shut()


async def test_a_program_that_ends_without_a_word_of_ours_is_quoted_with_what_it_said_aside() -> None:
    class Broken(Pipes):
        said: ClassVar[list[bytes]] = [b"sh: 1: no such ", b"program\n"]

        async def read_aside(self) -> bytes:
            return self.said.pop(0) if self.said else b""

    pipes = Broken()
    try:
        os.close(pipes.records)
        with pytest.raises(LostRecordsError, match="no such program"):
            await run_order(pipes, order(), host="inner", limits=LIMITS, emit=events.ignore)
    finally:
        pipes.shut()


async def test_silence_of_the_inner_side_is_noticed() -> None:
    async with served(Endless()) as (pipes, _):
        slow = InnerRequest(verb="create", request=VerbRequest(host="inner").as_json(), beat_s=PATIENCE_S)
        limits = DelegationLimits(whole_s=PATIENCE_S, silence_s=0.2)
        with pytest.raises(LostRecordsError, match="said nothing"):
            await run_order(pipes, slow, host="inner", limits=limits, emit=events.ignore)


def test_a_second_run_waits_until_the_one_that_was_cut_off_has_ended(tmp_path: Path) -> None:
    async def second(verb: Verb, request: VerbRequest, emit: events.Emit) -> RunOutcome:
        assert first.saved
        return outcome(request)

    async def scenario() -> None:
        async with served(first, tmp_path) as (lost, _):
            await lost.write(order().line())
            await first.begun.wait()
            async with served(second, tmp_path) as (pipes, _):
                running = asyncio.create_task(
                    run_order(pipes, order(), host="inner", limits=LIMITS, emit=waiting.append)
                )
                while not waiting:
                    await asyncio.sleep(0.01)
                lost.end_input()
                assert (await running).success

    first, waiting = Endless(), list[events.Event]()
    asyncio.run(scenario())
