"""The record of a manifest on a host: held by one run, whole or not there, never somebody else's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, PhaseStatus, RunOutcome, Verb
from stackyard.operator.record import RunRecord, RunState
from stackyard.operator.record_store import RecordBrokenError, RecordStore, RunBusyError
from stackyard.operator.request import VerbRequest
from stackyard.operator.results import result_document

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
    book = RecordStore(tmp_path, "m", "pve1")
    assert book.read() is None
    book.write(RECORD)
    assert book.read() == RECORD
    assert RECORD.is_unfinished
    assert book.path.stat().st_mode & 0o077 == 0, "for the owner alone"


def test_each_run_that_ended_is_kept_and_the_oldest_go(tmp_path: Path) -> None:
    book = RecordStore(tmp_path, "m", "pve1")
    for number in range(53):
        stamp = f"2026-01-02T03:04:{number:02d}.000000Z"
        book.close(dataclasses.replace(RECORD, started_at=stamp, state=RunState.DONE))
    kept = book.history()
    assert len(kept) == 50
    assert kept[-1].started_at == "2026-01-02T03:04:52.000000Z"


def test_the_same_manifest_on_another_host_has_another_record(tmp_path: Path) -> None:
    RecordStore(tmp_path, "m", "pve1").write(RECORD)
    assert RecordStore(tmp_path, "m", "pve2").read() is None


@pytest.mark.parametrize("name", ["..", "a/b", "../../etc", ".", "", "a@b", "~2e~"])
def test_no_name_leads_out_of_the_folder_or_to_that_of_another(tmp_path: Path, name: str) -> None:
    book = RecordStore(tmp_path, name, "pve1")
    assert book.folder.resolve().parent == (tmp_path / "operator").resolve()
    assert book.folder != RecordStore(tmp_path, "a", "b").folder


def test_a_second_holder_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    book = RecordStore(tmp_path, "m", "pve1")
    with book.hold("`create` of process 1"):
        with (
            pytest.raises(RunBusyError, match="`create` of process 1") as refused,
            RecordStore(tmp_path, "m", "pve1").hold("second"),
        ):
            pass
        with RecordStore(tmp_path, "m", "pve2").hold("another host is another record"):
            pass
    assert refused.value.exit_status == 75
    with book.hold("third"):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"verb": "create"}', '{"verb": "fly", "state": "done"}'])
def test_a_record_that_is_something_else_is_named(tmp_path: Path, content: str) -> None:
    book = RecordStore(tmp_path, "m", "pve1")
    book.write(RECORD)
    book.path.write_text(content)
    with pytest.raises(RecordBrokenError, match=r"record\.json"):
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
