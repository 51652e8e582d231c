"""The archive of a plan with modules and `terraform_data`, read here, says exactly what `tofu show` does."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest
from tests.support.engine import real_engine, workdir_in, write_root

from stackyard.engine import tofu
from stackyard.engine.changes import SENSITIVE, Action, Changes, read_changes
from stackyard.engine.plan_archive import read_archive
from stackyard.engine.version import Flavour

pytestmark = [pytest.mark.tofu, pytest.mark.timeout(300)]

ROOT = """
variable "hidden" {
  type      = string
  default   = "not-to-be-shown"
  sensitive = true
}
module "many" {
  for_each = toset(["a.b", "q\\"c"])
  source   = "./many"
  names    = %s
  hidden   = [var.hidden, each.key]
}
output "same" {
  value = "s"
}
output "hidden" {
  value     = terraform_data.root.output.hidden
  sensitive = true
}
resource "terraform_data" "root" {
  input = { text = "%s", list = [1, 2.5, "x"], nothing = null, hidden = var.hidden }
}
"""
MODULE = """
variable "names" {}
variable "hidden" {}
module "inner" {
  count  = 2
  source = "./inner"
}
data "terraform_remote_state" "none" {
  backend  = "local"
  config   = { path = "${path.module}/none.tfstate" }
  defaults = { word = "w" }
}
resource "terraform_data" "by_name" {
  for_each         = toset(var.names)
  input            = toset([each.key, "2"])
  triggers_replace = { hidden = var.hidden, names = length(var.names) > 2 }
}
resource "terraform_data" "counted" {
  count = length(var.names)
  input = terraform_data.by_name[var.names[count.index]].output
}
"""
MOVED = """
moved {
  from = terraform_data.root
  to   = terraform_data.renamed
}
"""


def test_modules_and_terraform_data_are_read_as_the_engine_shows_them(tmp_path: Path) -> None:
    write_root(tmp_path / "many", MODULE)
    write_root(tmp_path / "many/inner", 'resource "terraform_data" "x" {\n  input = "${path.module}"\n}\n')
    (tmp_path / "many/none.tfstate").write_text('{"version": 4, "serial": 1, "lineage": "a"}')
    compare = _Compared(tmp_path)
    first = compare.changes(ROOT % ('["one", "two"]', "a"))
    assert {change.action for change in first.planned} == {Action.CREATE}
    by_address = {change.address: change for change in first.planned}
    assert 'module.many["q\\"c"].terraform_data.by_name["two"]' in by_address
    assert 'module.many["a.b"].module.inner[1].terraform_data.x' in by_address
    root = by_address["terraform_data.root"].after
    assert root is not None
    assert root["input"]["hidden"] is SENSITIVE
    assert first.outputs == ("hidden", "same")
    assert compare.changes(ROOT % ('["one", "two"]', "a")).is_empty
    second = compare.changes(ROOT % ('["one", "three"]', "b"))
    assert {"create", "delete", "update"} <= {change.action.value for change in second.planned}
    third = compare.changes(ROOT % ('["one", "three", "four"]', "b"))
    assert Action.REPLACE in {change.action for change in third.planned}
    moved = (ROOT % ('["one", "three", "four"]', "b")).replace('"root"', '"renamed"').replace(
        "data.root", "data.renamed"
    ) + MOVED
    fourth = compare.changes(moved)
    assert [change.moved_from for change in fourth.planned if change.moved_from] == ["terraform_data.root"]
    last = compare.changes('variable "hidden" {\n  default = ""\n}\n')
    assert {change.action for change in last.planned} == {Action.DELETE}


class _Compared:
    """Plans a folder, and reads the plan both ways."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workdir = workdir_in(real_engine(Flavour.TOFU), folder)
        self._plan = folder / "plan"

    def changes(self, text: str) -> Changes:
        """Plan, compare, apply; return what was planned."""
        write_root(self._folder, text)
        return asyncio.run(self._changes())

    async def _changes(self) -> Changes:
        await tofu.init(self._workdir)
        await tofu.plan(self._workdir, self._plan)
        document = read_archive(self._plan.read_bytes(), {})
        assert document is not None
        shown = read_changes(await tofu.show_plan(self._workdir, self._plan))
        read = read_changes(document)
        for one, other in zip(read.planned, shown.planned, strict=True):
            assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert read == shown
        await tofu.apply(self._workdir, self._plan)
        return shown
