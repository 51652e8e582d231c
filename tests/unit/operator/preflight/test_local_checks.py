"""What a preflight says of this machine and of machines without an API, and how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.site import write_site

from stackyard.base.diagnostics import Diagnostic
from stackyard.base.errors import ExitStatus
from stackyard.operator.preflight import (
    CheckResult,
    PreflightError,
    PreflightReport,
    PreflightUnreachableError,
    Status,
    inspect,
    kinds,
    preflight,
    subject_of,
)
from stackyard.operator.preflight.model import Observation
from stackyard.sources.site import ConfigResolver


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    folder = write_site(tmp_path / "site")
    node = folder / "nodes" / "pve.yaml"
    # Nothing listens there, so that it is refused at once.
    node.write_text(node.read_text().replace("localhost:8006", "127.0.0.1:9"))
    return folder


def looked(site: Path, host: str) -> dict[str, CheckResult]:
    report = asyncio.run(inspect(subject_of(ConfigResolver(site), host)))
    return {check.name: check for check in report.checks}


def codes(check: CheckResult) -> list[str]:
    return [finding.kind.code for finding in check.findings]


def test_an_engine_that_is_not_there_is_found_beside_a_host_that_is_not(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACKYARD_TOFU", str(site / "no-tofu"))
    checks = looked(site, "pve")
    assert codes(checks["tools"]) == ["E-PREFLIGHT-TOOL"]
    assert codes(checks["api"]) == ["E-PREFLIGHT-API"]


def test_a_playbook_of_the_site_needs_its_runner(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    playbook = site / "ansible" / "playbooks" / "config-apply.yml"
    playbook.parent.mkdir(parents=True)
    playbook.write_text("[]\n")
    empty = site / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    said = [finding.detail for finding in looked(site, "pve")["tools"].findings]
    assert any("ansible-runner is not on PATH" in detail for detail in said)
    runner = empty / "ansible-runner"
    runner.write_text("#!/bin/sh\n")
    runner.chmod(0o755)
    assert "ansible-runner" in looked(site, "pve")["tools"].text


def test_a_machine_without_an_api_is_looked_at_over_ssh_alone(site: Path) -> None:
    (site / "nodes" / "father.yaml").unlink()
    report = asyncio.run(inspect(subject_of(ConfigResolver(site), "father")))
    assert [check.name for check in report.checks] == ["ssh", "secrets", "tools"]
    assert "E-PREFLIGHT-SSH" in [error.kind.code for error in report.errors]
    assert report.exit_status is ExitStatus.FAILED


def test_a_run_is_refused_with_every_finding_and_ends_as_its_worst(site: Path) -> None:
    with pytest.raises(PreflightUnreachableError) as caught:
        asyncio.run(preflight(ConfigResolver(site), None, "pve"))
    assert caught.value.exit_status is ExitStatus.UNREACHABLE
    assert "E-PREFLIGHT-API" in [finding.kind.code for finding in caught.value.diagnostics]


def check(*findings: Diagnostic) -> CheckResult:
    return CheckResult.of("x", Observation(text="seen", findings=findings), took_s=0.0)


def test_warnings_stop_nothing_and_errors_come_first() -> None:
    warning = Diagnostic(kind=kinds.CLOCK, detail="w")
    error = Diagnostic(kind=kinds.TOKEN, detail="e")
    assert [check().status, check(warning).status, check(warning, error).status] == [
        Status.OK,
        Status.WARN,
        Status.FAIL,
    ]
    well = PreflightReport(host="h", target="", is_reached=True, checks=(check(warning),))
    assert well.is_ready
    assert well.exit_status is ExitStatus.DONE
    assert well.summary == "h is ready, 1 warning."
    bad = PreflightReport(host="h", target="t", is_reached=True, checks=(check(warning), check(error)))
    assert [finding.detail for finding in bad.findings] == ["e", "w"]
    assert bad.summary == "h is not ready, 1 problem, 1 warning."
    with pytest.raises(PreflightError):
        bad.raise_errors()
    document = json.loads(json.dumps(bad.document()))
    assert document["ready"] is False
    assert document["checks"][1]["findings"][0]["code"] == "E-PREFLIGHT-TOKEN"
