"""The record of a run: there from its begin, complete at its end, and never in the way of the run."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
from pathlib import Path

import pytest
from tests.support.site_store import keys_in

from stackyard.base import events
from stackyard.base.errors import InvalidInputError, NotConfirmedError
from stackyard.base.redaction import Redactor
from stackyard.clients.objects import StoreError
from stackyard.guard import GuardRefusedError
from stackyard.path.recording import Recording, RunSubject, recorded
from stackyard.sources.store import ChosenStore, StoreMovedError
from stackyard.sources.store.identity import change_identity
from stackyard.state.run_records import Outcome, RecordedRun, RunRecords


@pytest.fixture
def subject(tmp_path: Path) -> RunSubject:
    return RunSubject(
        verb="apply",
        target="env:a",
        state="env/a/lab",
        store=ChosenStore(base=tmp_path / ".stackyard"),
        redactor=Redactor(["hunter2"]),
    )


def newest(subject: RunSubject) -> RecordedRun:
    with contextlib.closing(subject.store.read()) as objects:
        return RunRecords(objects).find("last")


def kept_events(subject: RunSubject) -> list[str]:
    with contextlib.closing(subject.store.read()) as objects:
        return [str(event) for _, event in RunRecords(objects).events(newest(subject).id)]


def line(text: str) -> events.LogLine:
    return events.LogLine(level=events.LogLevel.INFO, source="test", text=text)


async def test_a_run_is_on_record_while_it_works_and_done_afterwards(subject: RunSubject) -> None:
    seen: list[events.Event] = []
    async with recorded(subject, seen.append) as recording:
        recording.emit(line("the password is hunter2"))
        recording.emit(events.PlanCounted(operation="plan", add=2, change=1, remove=0, imported=0))
        assert newest(subject).outcome is Outcome.RUNNING
    run = newest(subject)
    assert (run.outcome, run.verb, run.state) == (Outcome.DONE, "apply", "env/a/lab")
    assert run.counts == {"plan": {"add": 2, "change": 1, "remove": 0}}
    assert run.duration_s is not None
    assert len(seen) == 2
    kept = kept_events(subject)
    assert len(kept) == 2
    assert "hunter2" not in "".join(kept)
    assert keys_in(subject.store.base, "runs/") == []
    assert keys_in(subject.store.base, "run-control/") == []


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidInputError("hunter2 is wrong"), Outcome.FAILED),
        (GuardRefusedError("no", ()), Outcome.REFUSED),
        (NotConfirmedError("Nothing was changed."), Outcome.STOPPED),
        (asyncio.CancelledError(), Outcome.STOPPED),
        (ZeroDivisionError(), Outcome.FAILED),
    ],
)
async def test_how_a_run_failed_is_on_record_without_its_secrets(
    subject: RunSubject, error: BaseException, outcome: Outcome
) -> None:
    with pytest.raises(type(error)):
        async with recorded(subject, events.ignore):
            raise error
    run = newest(subject)
    assert run.outcome is outcome
    assert "hunter2" not in str(run)


async def test_a_run_that_reports_its_errors_has_failed_too(subject: RunSubject) -> None:
    async with recorded(subject, events.ignore) as recording:
        recording.note_failures([])
        assert recording.run.outcome is Outcome.RUNNING
        recording.note_failures([InvalidInputError("web is wrong."), StoreError("It is away.")])
    run = newest(subject)
    assert run.outcome is Outcome.FAILED
    assert run.error is not None
    assert (run.error["code"], run.error["detail"]) == ("E-INVALID", "web is wrong. It is away.")


async def test_a_request_from_any_machine_stops_a_run_as_ctrl_c_does(subject: RunSubject) -> None:
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    try:
        async with recorded(subject, events.ignore) as recording:
            with contextlib.closing(subject.store.open()) as objects:
                RunRecords(objects).ask_to_stop(recording.run, "anna")
            await asyncio.wait_for(stopped.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
    assert any("anna asked" in text for text in kept_events(subject))


async def test_a_store_that_fails_during_a_run_does_not_stop_it(
    subject: RunSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("away")

    async with recorded(subject, events.ignore) as recording:
        recording.emit(line("first"))
        with monkeypatch.context() as patch:
            patch.setattr(RunRecords, "add_events", fail)
            recording.flush()
        recording.emit(line("second"))
    assert len(kept_events(subject)) == 2
    assert isinstance(recording, Recording)


async def test_a_run_does_not_begin_while_its_store_is_being_moved(subject: RunSubject) -> None:
    store = subject.store
    with contextlib.closing(store.open()) as objects:
        change_identity(objects, lambda now: now)
    opened = ChosenStore.open

    def open_then_move(self: ChosenStore) -> object:
        made = opened(self)
        change_identity(made, lambda now: dataclasses.replace(now, moving_to="s3://new"))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChosenStore, "open", open_then_move)
        with pytest.raises(StoreMovedError):
            async with recorded(subject, events.ignore):
                raise AssertionError("it began")
    with contextlib.closing(store.open_as_is()) as objects:
        assert objects.list("runs/") == ()
        assert objects.list("records/") == ()
