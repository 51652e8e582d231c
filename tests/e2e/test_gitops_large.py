"""Pull requests of many stacks and with large plans: what is shown stays within what a forge takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from tests.support.soak_forge import SoakForge
from tests.support.stacks_large import write_large_repository

from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.flow import plan_pull
from stackyard.gitops.model import Checkout
from stackyard.gitops.runs import TargetRun, VerbAnswer
from stackyard.sources.store import ChosenStore

LARGEST = 5 * 2**20
_LINE = 400


def _changes(size: int) -> list[dict[str, object]]:
    """Return changes of about so many bytes."""
    return [
        {
            "address": f'module.app.terraform_data.machine["{number}"]',
            "subject": f"machine {number}",
            "action": ("update", "create", "delete")[number % 3],
            "differences": [{"attribute": "input", "before": "word " * 30, "after": "other " * 30}],
        }
        for number in range(size // _LINE + 1)
    ]


def _answering(size_of: Callable[[str], int], asked: list[str]) -> Callable[..., object]:
    async def run(context: GitopsContext, checkout: Checkout, run: TargetRun) -> VerbAnswer:
        asked.append(run.target)
        changes = _changes(size_of(run.target))
        saved = {"plan": f"store:{len(asked)}", "bound_to": {"state": "x/1"}}
        return VerbAnswer(status=0, document={"changes": changes, "has_changes": True, **saved})

    return run


async def _plan_large(folder: Path, count: int, largest: int) -> tuple[SoakForge, list[str], float]:
    """Plan a pull request that changes every stack of a repository; the first one's plan is large."""
    forge = SoakForge(folder=folder / "origin")
    write_large_repository(forge.folder, count)
    forge.run("branch", "--force", "main", "HEAD")
    forge.tips["main"] = forge.run("rev-parse", "HEAD")
    names = sorted(path.parent for path in forge.folder.glob("*/*/*/main.tf") if "modules" not in path.parts)
    first = names[0].relative_to(forge.folder)
    modules = sorted(forge.folder.glob("modules/*/motd.txt"))
    assert modules
    forge.push(1, {str(one.relative_to(forge.folder)): "new\n" for one in modules}, is_forced=False)
    checkouts = open_checkouts(forge.clone_access.url, cache=folder / "cache", may_be_local=True)
    context = GitopsContext(
        forge=forge, checkouts=checkouts, store=ChosenStore(base=folder / "control" / ".stackyard")
    )
    asked: list[str] = []
    answer = _answering(lambda name: largest if str(first).endswith(name.partition(":")[2]) else 1, asked)
    began_s = time.monotonic()
    with mock.patch("stackyard.gitops.plan.run_verb", answer):
        plan = await plan_pull(context, 1)
    took_s = time.monotonic() - began_s
    assert len(plan.targets) == len(asked) == len(set(asked))
    return forge, asked, took_s


@pytest.mark.timeout(120)
async def test_a_plan_of_five_megabytes_is_shown_within_the_limit(tmp_path: Path) -> None:
    forge, asked, _ = await _plan_large(tmp_path, 12, LARGEST)
    shown = forge.shown(1)
    assert len(shown) <= forge.limits.comment_chars
    assert len(asked) == 12
    # Counts are of everything, whatever has room.
    lost = sum(one["action"] == "delete" for one in _changes(LARGEST))
    assert f"{lost} to destroy" in shown
    for name in asked:
        assert f"`{name}`" in shown


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_soak_of_three_thousand_stacks_and_a_plan_of_five_megabytes(tmp_path: Path) -> None:
    forge, asked, took_s = await _plan_large(tmp_path, 3000, LARGEST)
    shown, calls = forge.shown(1), len(forge.calls)
    sys.stdout.write(
        f"\n{len(asked)} targets in {took_s:.1f} s, {calls} calls, a comment of {len(shown)} characters\n"
    )
    assert len(asked) == 3000
    assert len(shown) <= forge.limits.comment_chars
    assert "2940 more" in shown
    assert took_s < 120
