"""Branch protection: what is missing is named, and only that is set."""

from __future__ import annotations

import dataclasses

import pytest
from tests.support.forge_double_rig import open_gitlab_rig
from tests.support.memory_forge import MemoryForge

from stackyard.clients.forge.model import Protection
from stackyard.gitops.protection import check_protection, fix_protection
from stackyard.gitops.settings import GitopsSettings, Requirements

GOOD = Protection(
    branch="main", blocks_pushes=True, binds_admins=True, checks=("stackyard", "lint"), approvals=1
)
WRONG = {
    "accepts direct pushes": {"blocks_pushes": False},
    "does not require the status `stackyard`": {"checks": ("lint",)},
    "requires 0 approvals": {"approvals": 0},
}


async def test_a_branch_that_takes_only_what_was_reviewed_is_well() -> None:
    forge = MemoryForge(protections={"main": GOOD})
    report = await check_protection(forge, "main", GitopsSettings())
    assert (report.missing, report.advice) == ((), ())


@pytest.mark.parametrize("words", WRONG)
async def test_what_is_missing_is_named_and_mended_and_the_rest_is_left(words: str) -> None:
    before = dataclasses.replace(GOOD, requires_up_to_date=True, **WRONG[words])  # type: ignore[arg-type]
    forge = MemoryForge(protections={"main": before})
    report = await check_protection(forge, "main", GitopsSettings())
    assert [words in one for one in report.missing] == [True]
    now = await fix_protection(forge, report, GitopsSettings())
    assert now.missing == ()
    after = forge.protections["main"]
    assert (after.blocks_pushes, set(after.checks), after.approvals) == (True, {"stackyard", "lint"}, 1)
    assert after.requires_up_to_date


async def test_a_branch_without_protection_gets_one() -> None:
    forge = MemoryForge()
    settings = GitopsSettings(requirements=Requirements(approvals=2))
    report = await check_protection(forge, "main", settings)
    assert len(report.missing) == 4
    assert (await fix_protection(forge, report, settings)).missing == ()
    assert forge.protections["main"].approvals == 2


async def test_what_is_well_is_not_written() -> None:
    forge = MemoryForge(protections={"main": GOOD})
    settings = GitopsSettings(requirements=Requirements(approvals=0))
    await fix_protection(forge, await check_protection(forge, "main", settings), settings)
    assert "protect" not in forge.calls


async def test_gitlab_requires_that_all_statuses_are_well_in_place_of_one() -> None:
    settings = GitopsSettings(requirements=Requirements(approvals=1))
    async with open_gitlab_rig() as rig, rig.open() as forge:
        report = await check_protection(forge, "main", settings)
        assert any("does not require the status" in one for one in report.missing)
        assert (await fix_protection(forge, report, settings)).missing == ()
