"""The page about the rules for modules and stacks is true: its commands run, and its rule refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.opa import opa
from tests.support.pages import ROOT, Reader
from tests.support.policy import check, good_repository
from tests.support.stacks import write

from stackyard.policy.rules import RULES

__all__ = ["opa"]

PAGE = "docs/howto/module-policy.md"
REFERENCE = "docs/reference/module-policy.md"


def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    reader = Reader(folder=tmp_path, programs=tmp_path / "bin", env={})
    printed = [text for _, text in reader.follow(PAGE)]
    assert "modules/pet/variables.tf:1: error: The variable `length` has no type." in printed[1]
    assert '+      version = "~> 3.6.2" # tested in May' in printed[2]
    assert "1 module and 0 stacks: no findings" in printed[3]
    assert "2 modules and 0 stacks: no findings (2 excepted)." in printed[4]


@pytest.mark.judges("opa")
def test_the_rule_of_the_page_refuses_what_it_says(opa: Path, tmp_path: Path) -> None:
    [(name, text)] = re.findall(r"```rego\n# (policy/\S+)\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    root = good_repository(tmp_path / "repo", {name: text, "stackyard.yaml": "policy: [policy]\n"})
    [found] = check(root).errors
    assert str(found.where) == "stacks/onprem/a/stack.yaml:1"
    write(root, {"stacks/onprem/a/stack.yaml": "tags: [x]\n"})
    assert check(root).errors == ()


def test_the_reference_has_every_rule_in_its_words() -> None:
    text = (ROOT / REFERENCE).read_text()
    rows = dict(re.findall(r"^\| \[(M\d+)\]\(#[^)]+\) \| (.*) \|$", text, re.MULTILINE))
    assert {name: said.lower() for name, said in rows.items()} == {one.id: one.title.lower() for one in RULES}
    assert re.findall(r"^## (M\d+):", text, re.MULTILINE) == [one.id for one in RULES]
