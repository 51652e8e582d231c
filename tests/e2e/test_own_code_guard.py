"""The guard on real plans of a user's own code: modules, count, for_each, removed blocks, deposed objects."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.support.engine import real_engine

from stackyard.engine.changes import Changes, read_changes
from stackyard.engine.version import Flavour
from stackyard.guard import Allowances, Permit, Verdict, inspect

pytestmark = pytest.mark.tofu

MODULE = """
variable "keys" { type = set(string) }
resource "terraform_data" "this" {
  for_each = var.keys
  input    = each.key
}
"""
CODE = """
module "web" {
  source = "./web"
  keys   = ["a,b", "c\\"d"]
}
resource "terraform_data" "list" { count = 3 }
resource "terraform_data" "kept" {}
"""


class Code:
    """A folder with code, and the engine that runs it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tofu = str(real_engine(Flavour.TOFU).path)
        # The settings of whoever runs the tests are not part of them.
        self._env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        (folder / "web").mkdir()
        (folder / "web" / "main.tf").write_text(MODULE)

    def run(self, *words: str, check: bool = True) -> str:
        ran = subprocess.run(
            [self._tofu, *words],
            cwd=self.folder,
            env=self._env,
            check=check,
            capture_output=True,
            text=True,
        )
        return ran.stdout

    def apply(self, code: str, *, check: bool = True) -> None:
        (self.folder / "main.tf").write_text(code)
        self.run("init")
        self.run("apply", "-auto-approve", check=check)

    def plan(self, code: str, *options: str) -> Changes:
        (self.folder / "main.tf").write_text(code)
        self.run("init")
        self.run("plan", "-out=x", *options)
        return read_changes(json.loads(self.run("show", "-json", "x")))


@pytest.fixture
def code(tmp_path: Path) -> Code:
    """Give a folder with a module, and nothing applied."""
    return Code(tmp_path)


def judge(changes: Changes, *names: str, everything: bool = False) -> Verdict:
    permits = frozenset(Permit(option="--allow-destroy", name=name) for name in names)
    return inspect(changes, Allowances(permits=permits, everything=everything))


def named(verdict: Verdict) -> list[str]:
    return [found.permit.name for found in verdict.refused if found.permit is not None]


def test_what_real_code_loses_is_named_by_the_addresses_that_the_engine_prints(code: Code) -> None:
    code.apply(CODE)
    changes = code.plan('resource "terraform_data" "kept" {}\n')
    going = ['module.web.terraform_data.this["a,b"]', 'module.web.terraform_data.this["c\\"d"]']
    lists = [f"terraform_data.list[{number}]" for number in range(3)]
    assert sorted(named(judge(changes))) == sorted([*going, *lists])
    assert judge(changes, *going, *lists).refused == ()
    assert judge(changes, "module.web", "terraform_data.list").refused == ()
    assert named(judge(changes, "terraform_data.list")) == going

    destroyed = code.plan(CODE, "-destroy")
    assert len(named(judge(destroyed, everything=True))) == 6
    names = ("module.web", "terraform_data.list", "terraform_data.kept")
    assert judge(destroyed, *names, everything=True).refused == ()
    without_intent = judge(destroyed, *names)
    assert [found.kind.code for found in without_intent.refused] == ["E-GUARD-NOTHING-IN-COMMON"]


def test_what_real_code_forgets_is_no_destruction(code: Code) -> None:
    code.apply('resource "terraform_data" "kept" {}\n')
    verdict = judge(
        code.plan("removed {\n  from = terraform_data.kept\n  lifecycle {\n    destroy = false\n  }\n}\n")
    )
    assert verdict.refused == ()
    assert [found.kind.code for found in verdict.warnings] == ["W-GUARD-FORGETS-RESOURCE"]


def test_a_former_object_that_a_failed_replacement_left_is_named(code: Code) -> None:
    resource = """
    resource "terraform_data" "web" {{
      triggers_replace = "{trigger}"
      lifecycle {{ create_before_destroy = true }}
      provisioner "local-exec" {{ command = "{command}" }}
    }}
    """
    code.apply(resource.format(trigger="1", command="true"))
    code.apply(resource.format(trigger="2", command="false"), check=False)
    changes = code.plan(resource.format(trigger="2", command="true"))
    deposed = [one for one in changes.planned if one.deposed]
    assert [one.address for one in deposed] == ["terraform_data.web"]
    verdict = judge(changes)
    assert any("deposed object" in found.detail for found in verdict.refused)
    assert set(named(verdict)) == {"terraform_data.web"}
    assert judge(changes, "terraform_data.web").refused == ()
