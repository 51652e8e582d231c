"""The record of a manifest on a host: held by one run, whole or not there, never somebody else's."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.site_store import overwrite

from stackyard.base import events
from stackyard.clients.objects import LeaseLostError
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, PhaseStatus, RunOutcome, Verb
from stackyard.operator.record import RunRecord, RunState
from stackyard.operator.record_store import RecordBrokenError, RecordStore, RunBusyError
from stackyard.operator.request import VerbRequest
from stackyard.operator.results import result_document
from stackyard.sources.store import ChosenStore

NODE = NodeOutcome(
    name="web",
    status=NodeStatus.FAILED,
    host="pve1",
    vm_id=100,
    address="10.0.0.5",
    depth=1,
    created=True,
    phases=(Phase(name="apply_spec", status=PhaseStatus.FAILED, took_s=1.5, detail="no room"),),
    error="no room",
    cause="db",
)
RECORD = RunRecord(
    manifest="m",
    host="pve1",
    verb=Verb.CREATE,
    state=RunState.RUNNING,
    started_at="2026-01-02T03:04:05.000000Z",
    pid=7,
    document={"name": "m"},
    vm_ids={"web": 100},
    nodes=(NODE,),
)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    book = RecordStore(ChosenStore(base=tmp_path), "m", "pve1")
    assert book.read() is None
    book.write(RECORD)
    assert book.read() == RECORD
    assert RECORD.is_unfinished


def test_the_same_manifest_on_another_host_has_another_record(tmp_path: Path) -> None:
    RecordStore(ChosenStore(base=tmp_path), "m", "pve1").write(RECORD)
    assert RecordStore(ChosenStore(base=tmp_path), "m", "pve2").read() is None


@pytest.mark.parametrize("name", ["a/b", "../../etc", "", "a@b", "~2e~"])
def test_no_name_leads_to_the_record_of_another(tmp_path: Path, name: str) -> None:
    book = RecordStore(ChosenStore(base=tmp_path), name, "pve1")
    assert book.key != RecordStore(ChosenStore(base=tmp_path), "a", "b").key
    book.write(RECORD)
    assert book.read() == RECORD


async def test_a_second_holder_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    book = RecordStore(ChosenStore(base=tmp_path), "m", "pve1")
    async with book.hold("`create` of process 1"):
        with pytest.raises(RunBusyError, match="`create` of process 1") as refused:
            async with RecordStore(ChosenStore(base=tmp_path), "m", "pve1").hold("second"):
                pass
        async with RecordStore(ChosenStore(base=tmp_path), "m", "pve2").hold("another host, another record"):
            pass
    assert refused.value.exit_status == 75
    async with book.hold("third") as has_waited:
        assert not has_waited


async def test_a_second_holder_waits_for_the_first_and_says_so(tmp_path: Path) -> None:
    said: list[events.Event] = []
    book = RecordStore(ChosenStore(base=tmp_path), "m", "pve1")
    second = RecordStore(ChosenStore(base=tmp_path), "m", "pve1")

    async def wait() -> bool:
        async with second.hold("second", wait_s=30, emit=said.append) as has_waited:
            return has_waited

    async with book.hold("`create` of process 1"):
        waiting = asyncio.create_task(wait())
        while not said:
            await asyncio.sleep(0.01)
    assert await waiting
    assert [one.waiting_for for one in said if isinstance(one, events.StepWaiting)] == [
        "m on pve1, held by `create` of process 1"
    ]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"verb": "create"}', '{"verb": "fly", "state": "done"}'])
def test_a_record_that_is_something_else_is_named(tmp_path: Path, content: str) -> None:
    book = RecordStore(ChosenStore(base=tmp_path), "m", "pve1")
    book.write(RECORD)
    overwrite(tmp_path, book.key, content.encode())
    with pytest.raises(RecordBrokenError, match="operator/manifest!m!pve1"):
        book.read()


def test_what_travels_between_operators_comes_back_whole() -> None:
    outcome = RunOutcome(
        verb=Verb.TEST,
        manifest="m",
        host="pve1",
        success=False,
        started_at="2026-01-02T03:04:05Z",
        duration_s=12.5,
        nodes=(NODE,),
        phases=(Phase(name="plan_guests"),),
        error="web: no room",
        orphans=("stray (9 on pve1)",),
        logs=("record.json",),
    )
    assert RunOutcome.from_json(outcome.as_json()) == outcome
    request = VerbRequest(
        text="{}", host="h", targets=("web",), vm_ids={"web": 5}, depth=2, is_delegated=True
    )
    assert VerbRequest.from_json(request.as_json()) == request


def test_the_published_form_has_an_error_only_where_there_is_one() -> None:
    well = dataclasses.replace(NODE, status=NodeStatus.COMPLETED, error=None, cause=None)
    other = dataclasses.replace(well, name="db", vm_id=101, address=None)
    outcome = RunOutcome(
        verb=Verb.CREATE,
        manifest="m",
        host="pve1",
        success=True,
        started_at="2026-01-02T03:04:05Z",
        duration_s=1.234,
        nodes=(well, other),
    )
    document = result_document(outcome)
    assert {"scenario", "success", "duration_seconds", "phases", "context", "nodes"} <= set(document)
    assert "error" not in document
    assert document["context"] == {
        "vm_ip": "10.0.0.5",
        "web_ip": "10.0.0.5",
        "vm_id": 100,
        "web_vm_id": 100,
        "db_vm_id": 101,
        "provisioned_vms": [{"name": "web", "vmid": 100}, {"name": "db", "vmid": 101}],
    }
    assert result_document(dataclasses.replace(outcome, error="x"))["error"] == "x"


# --- A run that loses the record


@contextlib.asynccontextmanager
async def lose(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[RecordStore, list[str]]]:
    """Give a record that was held and is taken over, and what its holder was told."""
    monkeypatch.setattr("stackyard.operator.record_store.PROMISE_S", 0.3)
    told: list[str] = []
    book = RecordStore(ChosenStore(base=folder), "m", "pve1")
    async with book.hold("first", on_loss=told.append):
        assert book.read() is None
        book.write(RECORD)
        # Another process, which saw the first one silent.
        overwrite(folder, "operator-locks/manifest!m!pve1", b'{"owner": "second"}')
        async with asyncio.timeout(30):
            while not told:
                await asyncio.sleep(0.01)
        yield book, told


async def test_a_run_whose_record_was_taken_over_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lose(tmp_path, monkeypatch) as (_, told):
        await asyncio.sleep(0.5)
        assert told == ["Another run took over the lease operator-locks/manifest!m!pve1."]


async def test_a_run_whose_record_was_taken_over_can_no_longer_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lose(tmp_path, monkeypatch) as (book, _):
        with pytest.raises(LeaseLostError):
            book.write(dataclasses.replace(RECORD, state=RunState.STOPPED))
    assert book.read() == RECORD


def test_a_record_that_another_run_wrote_is_not_overwritten(tmp_path: Path) -> None:
    ours, theirs = (RecordStore(ChosenStore(base=tmp_path), "m", "pve1") for _ in range(2))
    assert (ours.read(), theirs.read()) == (None, None)
    theirs.write(RECORD)
    with pytest.raises(LeaseLostError, match="operator/manifest!m!pve1"):
        ours.write(dataclasses.replace(RECORD, pid=8))
    assert ours.read() == RECORD


async def test_the_holder_writes_over_the_last_word_of_a_run_that_lost_the_record(tmp_path: Path) -> None:
    ours, theirs = (RecordStore(ChosenStore(base=tmp_path), "m", "pve1") for _ in range(2))
    async with ours.hold("ours"):
        assert ours.read() is None
        theirs.write(RECORD)
        new = dataclasses.replace(RECORD, pid=8)
        ours.write(new)
        assert ours.read() == new
