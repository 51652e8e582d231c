"""Rules in Rego judge the code of a repository beside M1 to M12, and never what they are not for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.opa import opa
from tests.support.policy import check, good_repository, rules_of
from tests.support.stacks import write

from stackyard.guard.policy import evaluate_policies
from stackyard.policy.context import read_context
from stackyard.policy.rego import describe_repository
from stackyard.sources.stacks.repository import find_stacks

__all__ = ["opa"]

PREFIX = """package stackyard.repository.names

deny contains refusal if {
	some module in input.modules
	some variable in module.variables
	not startswith(variable.name, "pet_")
	refusal := {
		"msg": sprintf("The variable %s does not begin with pet_.", [variable.name]),
		"file": variable.file,
		"line": variable.line,
	}
}

warn contains "There are stacks." if count(input.stacks) > 0
"""
PLANS = 'package stackyard.plans\n\ndeny contains "no plan is good"\n'


def with_rules(root: Path, **rules: str) -> Path:
    files: dict[str, str | None] = {f"policy/{name}.rego": text for name, text in rules.items()}
    return good_repository(root, {"stackyard.yaml": "policy: [policy]\n", **files})


def test_rules_see_modules_and_stacks_with_places(tmp_path: Path) -> None:
    context = read_context(find_stacks(good_repository(tmp_path)))
    document = describe_repository(context)
    [module], [stack] = document["modules"], document["stacks"]
    assert (module["path"], module["name"]) == ("modules/pet", "pet")
    assert module["variables"][0] == {
        "name": "length",
        "type": "number",
        "description": "How many words the name has.",
        "has_default": False,
        "sensitive": False,
        "file": "modules/pet/variables.tf",
        "line": 1,
    }
    assert (stack["name"], stack["critical"]) == ("onprem/a", True)
    assert stack["uses_modules"] == ["modules/pet"]
    assert stack["uses_providers"] == ["hashicorp/random"]


@pytest.mark.judges("opa")
@pytest.mark.usefixtures("opa")
def test_a_rule_refuses_with_file_and_line_and_warns(tmp_path: Path) -> None:
    result = check(with_rules(tmp_path / "repo", names=PREFIX, plans=PLANS))
    [error] = result.errors
    assert error.rule == "stackyard.repository.names"
    assert str(error.where) == "modules/pet/variables.tf:1"
    assert "does not begin with pet_" in error.detail
    assert [one.detail for one in result.findings if one not in result.errors] == [
        "stackyard.repository.names.warn: There are stacks."
    ]


@pytest.mark.judges("opa")
@pytest.mark.usefixtures("opa")
def test_rules_for_repositories_judge_no_plan(tmp_path: Path) -> None:
    root = with_rules(tmp_path / "repo", names=PREFIX)
    verdict = asyncio.run(evaluate_policies({}, [root / "policy"], context={"target": "stack:a"}))
    assert verdict.refused == ()
    write(root, {"policy/plans.rego": PLANS})
    [refused] = asyncio.run(evaluate_policies({}, [root / "policy"], context={"target": "stack:a"})).refused
    assert "no plan is good" in refused.detail


@pytest.mark.judges("opa")
@pytest.mark.usefixtures("opa")
def test_an_exception_may_name_a_package(tmp_path: Path) -> None:
    root = with_rules(tmp_path / "repo", names=PREFIX)
    said = (
        "exceptions:\n  - {rule: stackyard.repository.names, path: modules, reason: x, until: 2027-01-31}\n"
    )
    write(root, {"stackyard.yaml": f"policy: [policy]\n{said}"})
    result = check(root)
    assert result.errors == ()
    assert len(result.excepted) == 1


@pytest.mark.judges("opa")
@pytest.mark.usefixtures("opa")
def test_a_rule_that_does_not_compile_fails_the_check(tmp_path: Path) -> None:
    root = with_rules(tmp_path / "repo", names=f"{PREFIX}\nbroken if nothing.here\n")
    [error] = check(root).errors
    assert error.rule == "rego"
    assert error.where.path == "policy/names.rego"


def test_without_opa_rules_for_repositories_fail_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    root = with_rules(tmp_path / "repo", names=PREFIX)
    for name in ("git", "sh"):
        found = next(Path(one, name) for one in ("/usr/bin", "/bin") if Path(one, name).exists())
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    result = check(root)
    assert rules_of(result) == {"rego"}
    assert "E-POLICY-ENGINE" in result.errors[0].detail
    assert "tools install opa" in result.errors[0].remedy


def test_rules_for_plans_alone_need_no_opa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert check(with_rules(tmp_path / "repo", plans=PLANS)).errors == ()
