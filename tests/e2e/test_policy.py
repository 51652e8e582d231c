"""Rules in Rego on real plans: real OpenTofu plans, the real OPA judges."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.engine import real_engine
from tests.support.opa import opa

from stackyard.engine.plan_masking import mask_plan
from stackyard.engine.version import Flavour
from stackyard.guard import Allowances, Permit, Verdict
from stackyard.guard.policy import evaluate_policies

__all__ = ["opa"]

pytestmark = [pytest.mark.tofu, pytest.mark.judges("opa"), pytest.mark.usefixtures("opa")]

SECRETS = ("hunter2-variable", "hunter2-default", "hunter2-argument", "hunter2-output", "hunter2-nested")
CODE = f"""
variable "password" {{
  type      = string
  sensitive = true
}}
variable "fallback" {{
  type      = string
  sensitive = true
  default   = "{SECRETS[1]}"
}}
variable "region" {{ default = "north" }}
resource "terraform_data" "web" {{
  count = 2
  input = {{ owner = "ops", password = var.password, size = count.index }}
}}
resource "terraform_data" "all" {{
  input = {{ list = ["a", sensitive("{SECRETS[4]}")], region = var.region }}
}}
module "inner" {{
  source = "./inner"
  token  = "{SECRETS[2]}"
}}
output "token" {{
  value     = "{SECRETS[3]}-${{var.fallback}}"
  sensitive = true
}}
"""
INNER = """
variable "token" {
  type      = string
  sensitive = true
}
resource "terraform_data" "this" { input = var.token }
"""
OWNER = """package stackyard.owner

deny contains found if {
	some one in input.plan.resource_changes
	not one.change.after.input.owner
	msg := sprintf("%s has no owner", [one.address])
	found := {"msg": msg, "address": one.address, "permit": "no-owner"}
}

warn contains sprintf("%s of %s", [input.mode, input.stack.name])
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give the JSON of a real plan, with secrets wherever a plan may have one."""
    folder, tofu = tmp_path_factory.mktemp("stack"), str(real_engine(Flavour.TOFU).path)
    (folder / "inner").mkdir()
    (folder / "inner" / "main.tf").write_text(INNER)
    (folder / "main.tf").write_text(CODE)
    # The settings of whoever runs the tests are not part of them.
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    printed = ""
    for words in ("init", f"plan -out=x -var=password={SECRETS[0]}", "show -json x"):
        ran = subprocess.run(
            [tofu, *words.split()], cwd=folder, env=env, check=True, capture_output=True, text=True
        )
        printed = ran.stdout
    document: dict[str, Any] = json.loads(printed)
    assert all(secret in json.dumps(document) for secret in SECRETS)
    return document


def judge(plan: dict[str, Any], folder: Path, *names: str, **rules: str) -> Verdict:
    for name, text in rules.items():
        (folder / f"{name}.rego").write_text(text)
    permits = frozenset(Permit(option="--allow-policy", name=name) for name in names)
    context = {"target": "stack:web", "stack": {"name": "web"}, "mode": "normal"}
    return asyncio.run(
        evaluate_policies(plan, [folder], context=context, allowances=Allowances(permits=permits))
    )


def details(verdict: Verdict) -> list[str]:
    return [found.detail for found in verdict.refused]


def test_no_secret_of_a_real_plan_reaches_the_rules(plan: dict[str, Any], tmp_path: Path) -> None:
    masked = json.dumps(mask_plan(plan))
    assert [secret for secret in SECRETS if secret in masked] == []
    assert "north" in masked
    everything = "package stackyard\n\ndeny contains json.marshal(input)\n"
    (found,) = judge(plan, tmp_path, a=everything).refused
    assert "hunter2" not in found.detail


def test_a_rule_refuses_what_it_names_and_the_user_permits_it_by_name(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    verdict = judge(plan, tmp_path, owner=OWNER)
    assert [found.label for found in verdict.refused] == [
        "module.inner.terraform_data.this",
        "terraform_data.all",
    ]
    assert {str(found.permit) for found in verdict.refused} == {"--allow-policy no-owner"}
    assert [found.detail for found in verdict.warnings] == ["stackyard.owner.warn: normal of web"]
    permitted = judge(plan, tmp_path, "no-owner")
    assert (permitted.refused, len(permitted.permitted)) == ((), 2)


def test_a_rule_that_holds_lets_the_plan_through(plan: dict[str, Any], tmp_path: Path) -> None:
    verdict = judge(plan, tmp_path, a='package stackyard\n\ndeny contains "no" if input.mode == "destroy"\n')
    assert verdict == Verdict(refused=())


def test_rules_share_packages_and_read_data(plan: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('{"regions": ["north"]}')
    lib = "package lib\n\nknown(region) if region in data.regions\n"
    rule = (
        "package stackyard.region\n\nimport data.lib\n\n"
        'deny contains "known" if lib.known(input.plan.variables.region.value)\n'
    )
    assert details(judge(plan, tmp_path, lib=lib, rule=rule)) == ["stackyard.region.deny: known"]


@pytest.mark.parametrize(
    ("rule", "code", "line", "said"),
    [
        ("deny contains msg if {\n\tmsg := f(\n}", "E-POLICY-RULES", 5, "unexpected"),
        ("deny contains msg if {\n\tmsg := input.x + y\n}", "E-POLICY-RULES", 4, "unsafe"),
        (
            'deny contains http.send({"method": "get", "url": "http://x"}).body',
            "E-POLICY-RULES",
            3,
            "http.send",
        ),
        ('deny contains net.lookup_ip_addr("example.org")[_]', "E-POLICY-RULES", 3, "net.lookup_ip_addr"),
        ("deny contains opa.runtime().env.HOME", "E-POLICY-RULES", 3, "opa.runtime"),
        ("deny[msg] { msg := 1 }", "E-POLICY-RULES", 3, "if"),
        ("deny contains 1 / 0", "E-POLICY-EVALUATION", 3, "divide by zero"),
        ('deny := {"a"}\n\ndeny := {"b"}', "E-POLICY-EVALUATION", 5, "multiple outputs"),
        ("deny contains deny", "E-POLICY-RULES", 3, "recursive"),
    ],
)
def test_a_rule_that_does_not_work_refuses_with_its_file_and_line(
    plan: dict[str, Any], tmp_path: Path, rule: str, code: str, line: int, said: str
) -> None:
    verdict = judge(plan, tmp_path, a=f"package stackyard\n\n{rule}\n")
    found = verdict.refused[0]
    assert (found.kind.code, found.permit) == (code, None)
    assert str(found.where).startswith(f"{tmp_path}/a.rego:{line}")
    assert said in found.detail


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("dney contains 1", "neither `deny` nor `warn`"),
        ("deny := true", "not a set"),
        ("deny contains 1", "neither a text nor an object"),
        ('deny := {"a"} if input.nothing', "neither `deny` nor `warn`"),
        ('deny(x) := {"a"} if x', ""),
    ],
)
def test_a_rule_of_another_form_refuses(plan: dict[str, Any], tmp_path: Path, rule: str, said: str) -> None:
    found = judge(plan, tmp_path, a=f"package stackyard\n\n{rule}\n").refused
    assert found
    assert found[0].kind.code == "E-POLICY-RULES"
    assert said in found[0].detail


def test_a_rule_that_takes_too_long_refuses(plan: dict[str, Any], tmp_path: Path) -> None:
    rule = 'package stackyard\n\ndeny contains "x" if {\n\tsome i in numbers.range(1, 100000)\n'
    rule += "\tsome j in numbers.range(1, 100000)\n\ti * j == -1\n}\n"
    (tmp_path / "a.rego").write_text(rule)
    verdict = asyncio.run(evaluate_policies(plan, [tmp_path], context={}, timeout_s=0.5))
    assert [found.kind.code for found in verdict.refused] == ["E-POLICY-EVALUATION"]


def test_odd_names_of_folders_and_packages_are_no_trouble(plan: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "a:b -x é"
    folder.mkdir()
    assert details(judge(plan, folder, a='package stackyard.default\n\ndeny contains "x"\n'))
