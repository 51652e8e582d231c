"""Reports of runs: three files that say the same, whatever is in the names."""

from __future__ import annotations

import concurrent.futures
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from stackyard.base.errors import FileError
from stackyard.base.redaction import Redactor
from stackyard.operator.outcome import NodeOutcome, NodeStatus, Phase, PhaseStatus, RunOutcome, Verb
from stackyard.operator.reports import Report, write_report, write_reports

HOSTILE = 'a|b`c`<script>&amp;"\x00\x1b[31m]]>\n## not a heading\ud800'


def outcome(*, success: bool = True, error: str | None = None, **fields: object) -> RunOutcome:
    whole: dict[str, object] = {
        "verb": Verb.TEST,
        "manifest": "n2-quick",
        "host": "father",
        "success": success,
        "started_at": "2026-11-16T07:12:00+00:00",
        "duration_s": 61.25,
        "error": error,
        **fields,
    }
    return RunOutcome(**whole)  # type: ignore[arg-type]


FAILED = NodeOutcome(
    name="edge",
    status=NodeStatus.FAILED,
    host="root-pve",
    depth=1,
    phases=(
        Phase(name="create_guest", took_s=4.0),
        Phase(name="wait_ssh", status=PhaseStatus.FAILED, took_s=30.0, detail="No answer.\nPort 22."),
    ),
    error="No answer.",
)
SKIPPED = NodeOutcome(
    name="leaf", status=NodeStatus.SKIPPED, host="edge", depth=2, error="Skipped.", cause="edge"
)
WELL = NodeOutcome(
    name="root-pve",
    type="pve",
    status=NodeStatus.COMPLETED,
    host="father",
    vm_id=99011,
    address="10.0.0.5",
    phases=(Phase(name="create_guest", took_s=4.5),),
)


def suites(path: Path) -> list[ET.Element]:
    return list(ET.fromstring(path.read_bytes()))


def require_junit(path: Path) -> None:
    """Check the shape that the strictest readers of JUnit XML ask for."""
    root = ET.fromstring(path.read_bytes())
    assert root.tag == "testsuites"
    assert not root.attrib
    for suite in root:
        assert suite.tag == "testsuite"
        assert {
            "id",
            "package",
            "name",
            "timestamp",
            "hostname",
            "tests",
            "failures",
            "errors",
            "time",
        } <= set(suite.attrib)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        tags = [child.tag for child in suite]
        assert tags[0] == "properties"
        assert tags[-2:] == ["system-out", "system-err"]
        cases = suite.findall("testcase")
        assert set(tags[1:-2]) <= {"testcase"}
        assert len(cases) == int(suite.attrib["tests"])
        assert len(suite.findall("testcase/failure")) == int(suite.attrib["failures"])
        assert len(suite.findall("testcase/skipped")) == int(suite.attrib["skipped"])
        for case in cases:
            assert {"name", "classname", "time"} == set(case.attrib)
            assert float(case.attrib["time"]) >= 0
            assert len(case) <= 1
            assert all(child.attrib.get("type") for child in case if child.tag == "failure")


def test_a_run_that_passed_is_reported_in_three_forms_named_by_its_start(tmp_path: Path) -> None:
    paths = write_reports(outcome(nodes=(WELL,), logs=("runs/n2-quick.json",)), tmp_path / "new" / "reports")
    assert [path.name for path in paths] == [
        "20261116-071200.passed.md",
        "20261116-071200.passed.json",
        "20261116-071200.passed.xml",
    ]
    document = json.loads(paths[1].read_text())
    assert document["scenario"] == "test"
    assert document["success"] is True
    assert document["finished_at"] == "2026-11-16T07:13:01+00:00"
    assert document["nodes"][0]["phases"][0] == {
        "name": "create_guest",
        "status": "passed",
        "duration": 4.5,
        "detail": "",
    }
    text = paths[0].read_text()
    assert text.startswith("# test n2\\-quick on father: passed\n")
    assert "| root\\-pve | completed | 99011 | 10.0.0.5 | father | 0 | 4.5 s |" in text
    assert "- runs/n2\\-quick.json" in text
    require_junit(paths[2])


def test_a_failure_is_in_every_form_with_its_phase_its_error_and_its_cause(tmp_path: Path) -> None:
    failed = outcome(
        success=False, error="1 node failed.", nodes=(WELL, FAILED, SKIPPED), orphans=("x (7 on y)",)
    )
    markdown, _, junit = write_reports(failed, tmp_path)
    assert markdown.name == "20261116-071200.failed.md"
    text = markdown.read_text()
    assert "## Why it failed\n\n```text\n1 node failed.\n```" in text
    assert "| wait\\_ssh | ❌ failed | 30.0 s | No answer. Port 22. |" in text
    assert "Because of edge." in text
    assert "## Left over\n\n- x \\(7 on y\\)" in text
    require_junit(junit)
    run, well, broken, skipped = suites(junit)
    assert run.attrib["failures"] == "0", "the failure is counted once, where it happened"
    assert well.attrib["failures"] == "0"
    failure = broken.find("testcase[@name='wait_ssh']/failure")
    assert failure is not None
    assert failure.attrib["message"] == "No answer."
    assert failure.text == "No answer.\nPort 22."
    assert skipped.find("testcase/skipped") is not None


def test_a_failure_that_no_phase_tells_is_still_a_failed_case(tmp_path: Path) -> None:
    bare = NodeOutcome(name="edge", status=NodeStatus.FAILED, host="father", error="It vanished.")
    for nodes in ((), (bare,)):
        *_, junit = write_reports(outcome(success=False, error="The lock was lost.", nodes=nodes), tmp_path)
        require_junit(junit)
        assert len(ET.fromstring(junit.read_bytes()).findall("testsuite/testcase/failure")) == 1


def test_hostile_names_and_errors_do_nothing_in_any_form(tmp_path: Path) -> None:
    node = NodeOutcome(
        name=HOSTILE,
        status=NodeStatus.FAILED,
        host=HOSTILE,
        address=HOSTILE,
        phases=(Phase(name=HOSTILE, status=PhaseStatus.FAILED, detail=HOSTILE),),
        error=f"{HOSTILE}\n````\nhttps://evil.example",
        cause=HOSTILE,
    )
    hostile = outcome(
        success=False, manifest=HOSTILE, host=HOSTILE, error=HOSTILE, nodes=(node,), logs=(HOSTILE,)
    )
    markdown, document, junit = write_reports(hostile, tmp_path)
    require_junit(junit)
    assert "]]>" in suites(junit)[1].attrib["name"]
    assert json.loads(document.read_text())["nodes"][0]["name"] == HOSTILE.replace("\ud800", "?")
    text = markdown.read_text()
    assert "\x1b" not in text
    outside, inside, fence = [], False, ""
    for line in text.splitlines():
        if not inside and line.startswith("```"):
            inside, fence = True, line.removesuffix("text")
        elif inside and line == fence:
            inside = False
        elif not inside:
            outside.append(line)
    assert not inside
    assert not any("<" in line for line in outside)
    assert not any(line.startswith("## not") for line in outside)
    assert not any("https://" in line for line in outside)
    rows = [line for line in outside if line.startswith("| a")]
    assert rows
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {5, 8}


def test_no_secret_is_in_any_form(tmp_path: Path) -> None:
    secret = "hunter2-secret"
    leaky = NodeOutcome(
        name="edge",
        status=NodeStatus.FAILED,
        host="father",
        phases=(Phase(name="wait_ssh", status=PhaseStatus.FAILED, detail=f"password {secret}"),),
        error=f"refused {secret}",
    )
    run = outcome(success=False, error=f"token={secret}", nodes=(leaky,), logs=(f"/logs/{secret}",))
    paths = write_reports(run, tmp_path, redactor=Redactor([secret]))
    assert all(secret not in path.read_text() for path in paths)
    assert all("********" in path.read_text() for path in paths)


def test_reports_of_one_second_never_write_over_each_other(tmp_path: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write_reports(outcome(), tmp_path), range(16)))
    names = {path.name for paths in written for path in paths}
    assert len(names) == 48
    assert "20261116-071200-16.passed.xml" in names
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names), "nothing else is left"
    for paths in written:
        assert len({path.name.partition(".")[0] for path in paths}) == 1, "the three of a run belong together"


def test_a_writer_that_was_killed_leaves_nothing_that_stops_the_next(tmp_path: Path) -> None:
    (tmp_path / ".20261116-071200.claim").touch()
    markdown, *_ = write_reports(outcome(), tmp_path)
    assert markdown.name == "20261116-071200-2.passed.md"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"file/reports"):
        write_reports(outcome(), tmp_path / "file" / "reports")


def test_a_scenario_has_a_report_without_nodes(tmp_path: Path) -> None:
    report = Report(
        scenario="pve-setup",
        host="father",
        success=True,
        started_at="2026-11-16T07:12:00",
        duration_s=3.0,
        phases=(Phase(name="ensure_pve", took_s=3.0), Phase(name="setup_pve", status=PhaseStatus.SKIPPED)),
    )
    markdown, document, junit = write_report(report, tmp_path)
    assert markdown.read_text().startswith("# pve\\-setup on father: passed")
    assert json.loads(document.read_text())["manifest"] is None
    require_junit(junit)
    assert len(suites(junit)) == 1
