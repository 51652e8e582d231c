"""Attacks on a control machine through what a forge lets people do: branches, merges, comments, accounts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.gitops_rig import open_gitops, stack, target_of

from stackyard.clients.forge.failures import ForgeRefusedError
from stackyard.clients.forge.model import MergeMethod
from stackyard.gitops.matrix import Share, plan_some, select_targets
from stackyard.gitops.model import TargetState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

WEB, RULES = "stacks/web/main.tf", "stackyard.yaml"
FREE = "gitops: {approvals: 0, allow_code: write}\n"
CHANGES = TargetState.CHANGES


async def test_a_branch_that_anybody_may_push_to_makes_no_rules_and_applies_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    program = f'data "external" "x" {{ program = ["touch", "{mark}"] }}\n'
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        loose = {WEB: stack(more=program), RULES: FREE}
        await yard.rig.commit("loose", loose)
        # What both branches have in the same words is no conflict.
        await yard.rig.commit(
            "change", {**loose, "stacks/web/more.tf": 'resource "terraform_data" "more" {}\n'}
        )
        ask = {"title": "Change", "head": "change", "base": "loose"}
        made = await yard.rig._ask(yard.rig.author, "POST", "/pulls", ask)
        number = int(made["number"])
        planned = await yard.plan(number)
        assert (planned.targets, "default branch" in planned.notes[0]) == ((), True)
        assert await select_targets(yard.context, number) == ()
        assert await plan_some(yard.context, number, Share(targets=frozenset({"stack:web"}))) is None
        # Gitea needs a moment before it can merge one that was only just opened.
        for left in reversed(range(20)):
            try:
                await yard.merge(number)
                break
            except ForgeRefusedError:
                assert left
                await asyncio.sleep(0.5)
        assert (await yard.apply(number)).targets == ()
        assert not mark.exists()


async def test_what_was_shown_for_main_is_not_applied_from_another_branch(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("change", {WEB: stack("one")})
        await yard.plan(pull.number)
        await yard.approve(pull.number)
        await yard.rig.commit("loose", {RULES: FREE})
        await yard.rig._ask(yard.rig.author, "PATCH", f"/pulls/{pull.number}", {"base": "loose"})
        await yard.merge(pull.number)
        assert (await yard.apply(pull.number)).targets == ()
        assert "default branch" in await yard.our_comment(pull.number)


@pytest.mark.parametrize("method", [MergeMethod.MERGE, MergeMethod.SQUASH, MergeMethod.REBASE])
async def test_who_merges_before_the_plan_does_not_bring_their_own_rules(
    tmp_path: Path, method: MergeMethod
) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {RULES: FREE})
        await yard.rig.commit("more", {WEB: stack("one")})
        await yard.merge(pull.number, method)
        for _ in range(2):
            assert target_of(await yard.apply(pull.number), "stack:web").state is CHANGES
        assert "1 more approval" in await yard.our_comment(pull.number)


async def test_a_commit_that_only_begins_with_the_allowed_digits_is_not_allowed(tmp_path: Path) -> None:
    program = 'data "external" "x" { program = ["id"] }\n'
    async with open_gitops(tmp_path, {WEB: stack(), RULES: "gitops: {allow_code: write}\n"}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one", more=program)})
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.BLOCKED
        assert f"stackyard allow code {pull.head}" in await yard.our_comment(pull.number)
        await yard.say(pull.number, f"stackyard allow code {pull.head[:12]}")
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.BLOCKED
