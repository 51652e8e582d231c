"""The page about rules is true: its rule refuses what it says, and its commands run."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.opa import opa
from tests.support.pages import ROOT, Reader, blocks_of

from stackyard.guard.policy import evaluate_policies

__all__ = ["opa"]

PAGE = "docs/howto/policy.md"


def write_rules(folder: Path) -> Path:
    """Write the files that the page shows, each with its name in the first line."""
    shown = re.findall(r"```rego\n# (policy/\S+)\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)
    assert [name for name, _ in shown] == ["policy/owner.rego", "policy/owner_test.rego"]
    (folder / "policy").mkdir()
    for name, text in shown:
        (folder / name).write_text(text)
    return folder / "policy"


def create(address: str, tags: dict[str, str]) -> dict[str, Any]:
    change = {"actions": ["create"], "before": None, "after": {"tags": tags}, "after_sensitive": {}}
    return {"address": address, "mode": "managed", "change": change}


@pytest.mark.judges("opa")
def test_the_commands_of_the_page_run(opa: Path, tmp_path: Path) -> None:
    write_rules(tmp_path)
    reader = Reader(folder=tmp_path, programs=tmp_path / "bin", env={})
    printed = "".join(map(reader.type, blocks_of(PAGE)))
    assert "PASS: 2/2" in printed


@pytest.mark.judges("opa")
def test_the_rule_of_the_page_refuses_what_it_says(opa: Path, tmp_path: Path) -> None:
    plan = {"resource_changes": [create("aws_instance.a", {"owner": "ops"}), create("aws_instance.b", {})]}
    verdict = asyncio.run(evaluate_policies(plan, [write_rules(tmp_path)], context={"mode": "destroy"}))
    assert [found.detail for found in verdict.refused] == [
        "stackyard.owner.deny: aws_instance.b has no tag `owner`."
    ]
    assert [str(found.permit) for found in verdict.refused] == ["--allow-policy no-owner"]
    assert [found.detail for found in verdict.warnings] == [
        "stackyard.owner.warn: A whole stack is destroyed."
    ]
