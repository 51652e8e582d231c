"""OPA that is missing, dies, hangs or talks nonsense refuses the plan."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.programs import HANGS, write_program

from stackyard.guard import Finding, Verdict
from stackyard.guard.policy import evaluate_policies

CAPABILITIES = """echo '{"builtins": [{"name": "plus"}, {"name": "http.send"}], "features": []}'"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with one rule."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "a.rego").write_text("package stackyard\n\ndeny contains input.target\n")
    return tmp_path / "policy"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Give the empty folder that is the whole PATH; there is no managed copy either."""
    del home
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def script(programs: Path, eval_: str, *, version: str = "1.14.1", capabilities: str = CAPABILITIES) -> None:
    cases = f"version) echo 'Version: {version}';; capabilities) {capabilities};; eval) {eval_};;"
    write_program(programs / "opa", f'case "$1" in {cases} esac')


def evaluate(folder: Path, timeout_s: float = 60.0) -> Verdict:
    return asyncio.run(evaluate_policies({}, [folder], context={"target": "stack:a"}, timeout_s=timeout_s))


def only(verdict: Verdict) -> Finding:
    (found,) = verdict.refused
    assert (verdict.permitted, found.permit) == ((), None)
    return found


def test_without_rules_there_is_nothing_to_judge(programs: Path) -> None:
    assert asyncio.run(evaluate_policies({}, [], context={})) == Verdict(refused=())


def test_without_opa_a_plan_with_rules_is_refused(programs: Path, folder: Path) -> None:
    found = only(evaluate(folder))
    assert found.kind.code == "E-POLICY-ENGINE"
    assert "stackyard tools install opa" in found.kind.remedy


def test_an_opa_that_is_too_old_is_refused(programs: Path, folder: Path) -> None:
    script(programs, "true", version="0.70.0")
    found = only(evaluate(folder))
    assert found.kind.code == "E-POLICY-ENGINE"
    assert "0.70.0 is older than 1.0.0" in found.detail


@pytest.mark.parametrize(
    "capabilities", ["echo nonsense", "echo '{}'", "exit 3", """echo '{"builtins": [1]}'"""]
)
def test_an_opa_that_cannot_be_kept_from_the_network_is_refused(
    programs: Path, folder: Path, capabilities: str
) -> None:
    script(programs, "true", capabilities=capabilities)
    assert only(evaluate(folder)).kind.code == "E-POLICY-ENGINE"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("kill -9 $$", "status -9"),
        ("echo panic: boom >&2; exit 2", "panic: boom"),
        ("echo '{\"result\": []}'; exit 1", "status 1"),
        ("echo garbage", "garbage"),
        ("true", "nothing"),
        ("while echo $PATH$0$@$@$@; do :; done", ""),
    ],
)
def test_an_opa_that_dies_or_talks_nonsense_refuses(
    programs: Path, folder: Path, does: str, said: str
) -> None:
    script(programs, does)
    found = only(evaluate(folder))
    assert found.kind.code == "E-POLICY-EVALUATION"
    assert said in found.detail


def test_an_opa_that_never_ends_is_stopped(
    programs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stackyard.guard.policy.evaluation._PATIENCE_S", 0.2)
    script(programs, HANGS)
    assert only(evaluate(folder, timeout_s=0.3)).kind.code == "E-POLICY-EVALUATION"


def test_opa_sees_no_environment_and_no_plan_in_its_arguments(
    programs: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-rules")
    seen = tmp_path / "seen"
    script(programs, f'/usr/bin/env > {seen}; echo "$@" >> {seen}; /bin/cat capabilities.json >> {seen}')
    plan = {"resource_changes": [{"address": "secret_in_argv.x"}]}
    asyncio.run(evaluate_policies(plan, [folder], context={}))
    text = seen.read_text()
    assert "not-for-rules" not in text
    assert "secret_in_argv" not in text
    assert "http.send" not in text
    assert '"allow_net":[]' in text


def test_broken_rules_refuse_before_opa_is_looked_for(programs: Path, tmp_path: Path) -> None:
    assert only(evaluate(tmp_path / "nowhere")).kind.code == "E-POLICY-RULES"
