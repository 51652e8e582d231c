"""The examples of stacks keep the rules for modules and stacks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.support.policy import check
from tests.support.stacks import commit, git

EXAMPLES = Path(__file__).parents[3] / "examples"
# A registry has the checksums of the AWS provider; the lock file is made where one can be reached.
WITHOUT_LOCK = "tofu/stacks/cloud/aws_global"


@pytest.mark.parametrize("name", ["layers", "stacks"])
def test_an_example_keeps_every_rule(name: str, tmp_path: Path) -> None:
    root = tmp_path / name
    shutil.copytree(EXAMPLES / name, root)
    git(root, "init", "--quiet", "--initial-branch", "main")
    commit(root)
    found = {(one.rule, str(one.where.path)) for one in check(root).findings}
    missing = {("M3", f"{WITHOUT_LOCK}/.terraform.lock.hcl"), ("M8", WITHOUT_LOCK)}
    assert found == (missing if name == "stacks" else set())
