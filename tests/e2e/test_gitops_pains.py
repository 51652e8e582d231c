"""The pains that users of Atlantis, Digger, Terragrunt and Terramate report, each on a real Gitea.

Those that need no forge are in tests/unit/gitops/test_gitops_pains_alone.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gitops_rig import GitopsRig, open_gitops, stack, target_of

from stackyard.clients.forge.model import CommitState, CommitStatus, MergeMethod
from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.flow import unlock_pull
from stackyard.gitops.locks import TargetLock, TargetLocks
from stackyard.gitops.model import TargetState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

WEB, DB = "stacks/web/main.tf", "stacks/db/main.tf"
CHANGES, APPLIED, WAITING = TargetState.CHANGES, TargetState.APPLIED, TargetState.WAITING


async def test_pain_01_a_plan_is_not_applied_once_main_moved_and_the_comment_says_what_did(
    tmp_path: Path,
) -> None:
    async with open_gitops(tmp_path, {WEB: stack(), DB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one")})
        await yard.plan(pull.number)
        await yard.approve(pull.number)
        await yard.rig.commit("main", {"note.txt": "x\n"})
        await yard.merge(pull.number)
        moved = await yard.apply(pull.number)
        assert target_of(moved, "stack:web").state is CHANGES
        shown = await yard.our_comment(pull.number)
        assert "no longer fits" in shown
        assert "the base branch moved" in shown
        # What was said of the plan before counts no more; after the merge, a comment approves.
        assert target_of(await yard.apply(pull.number), "stack:web").state is CHANGES
        await yard.say(pull.number, "stackyard apply")
        assert target_of(await yard.apply(pull.number), "stack:web").state is APPLIED


async def test_pain_02_03_and_13_outputs_are_never_made_up_and_the_next_layer_is_planned_in_its_turn(
    tmp_path: Path,
) -> None:
    taker = stack(more='variable "id" { type = string }\nresource "terraform_data" "x" { input = var.id }\n')
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull(
            "layers",
            {
                WEB: stack("one", more='output "id" { value = terraform_data.one.id }\n'),
                DB: taker,
                "stacks/db/stack.yaml": "after:\n  - {stack: web, outputs: [id]}\n",
            },
        )
        planned = await yard.plan(pull.number)
        assert target_of(planned, "stack:db").state is WAITING
        assert target_of(planned, "stack:db").waits_for == ("stack:web",)
        assert not target_of(planned, "stack:db").document
        await yard.approve(pull.number)
        await yard.plan(pull.number)
        # What waits does not hold up the merge.
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.SUCCESS
        await yard.merge(pull.number)
        first = await yard.apply(pull.number)
        assert target_of(first, "stack:web").state is APPLIED
        later = target_of(first, "stack:db")
        assert later.state is CHANGES
        # It is bound to the version of the state that the outputs came from.
        assert later.document["bound_to"]["inputs"].startswith("web ")
        await yard.say(pull.number, "stackyard apply stack:db")
        assert target_of(await yard.apply(pull.number), "stack:db").state is APPLIED


async def test_pain_06_and_11_only_what_changed_is_planned_and_shown_in_one_comment(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack("a"), DB: stack("b")}) as yard:
        pull = await yard.open_pull("docs", {"README.md": "Other words.\n"})
        assert (await yard.plan(pull.number)).targets == ()
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.SUCCESS
        await yard.rig.commit("docs", {WEB: stack("a", "c")})
        planned = await yard.plan(pull.number)
        assert [one.target for one in planned.targets] == ["stack:web"]
        # A comment that was deleted by hand is written again, and otherwise edited.
        [before] = await yard.our_comments(pull.number)
        await yard.rig.remove_comment(pull.number, before.id)
        await yard.plan(pull.number)
        [after] = await yard.our_comments(pull.number)
        assert (after.id != before.id, after.body) == (True, before.body)


async def test_pain_09_plans_are_free_applies_lock_and_who_waits_is_next(tmp_path: Path) -> None:
    def said(text: str) -> str:
        return stack(more=f'resource "terraform_data" "a" {{ input = "{text}" }}\n')

    files = {WEB: said("none"), "stackyard.yaml": "gitops: {apply: before-merge, approvals: 1}\n"}
    async with open_gitops(tmp_path, files) as yard:
        one = await yard.open_pull("one", {WEB: said("one")})
        two = await yard.open_pull("two", {WEB: said("two")})
        for pull in (one, two):
            await yard.plan(pull.number)
            await yard.approve(pull.number)
        assert target_of(await yard.apply(one.number), "stack:web").state is APPLIED
        # The state moved: what was approved is another plan, and it is not this one's turn.
        assert target_of(await yard.apply(two.number), "stack:web").state is CHANGES
        await yard.approve(two.number)
        assert target_of(await yard.apply(two.number), "stack:web").state is CHANGES
        shown = await yard.our_comment(two.number)
        assert f"pull request {one.number} has it" in shown
        assert "this one is number 1 of those that wait" in shown
        # Nobody gives back what is another one's; what one has is its own to give back.
        assert await unlock_pull(yard.context, one.number + two.number) == ()
        locks = TargetLocks(yard.context.store, yard.rig.repository)
        assert locks.read(["stack:web"])["stack:web"].holder == one.number
        await yard.merge(one.number)
        await yard.apply(one.number)
        assert locks.read(["stack:web"])["stack:web"] == TargetLock(holder=two.number)


async def test_pain_12_no_secret_is_shown_whatever_it_is_written_into(tmp_path: Path) -> None:
    code = """
        variable "password" {
          type      = string
          sensitive = true
          default   = "correct-horse-battery"
        }
        resource "terraform_data" "a" { input = var.password }
        resource "terraform_data" "b" { input = "AKIAIOSFODNN7EXAMPLE" }
        resource "terraform_data" "c" { input = "q8Zr1mVxT0pLw7YdK3uBsE5c" }
    """
    async with open_gitops(tmp_path, {WEB: stack(more=code)}) as yard:
        await yard.apply_new("first", {WEB: stack("x", more=code)})
        changed = code.replace("horse", "mule").replace("EXAMPLE", "EXAMPLF").replace("q8Zr1", "r9As2")
        pull = await yard.open_pull("second", {WEB: stack("x", more=changed)})
        planned = target_of(await yard.plan(pull.number), "stack:web")
        assert planned.state is CHANGES
        shown = await yard.our_comment(pull.number)
        assert "~ change terraform_data.b" in shown
        for secret in ("horse", "mule", "AKIA", "q8Zr1", "r9As2"):
            assert secret not in shown


async def test_pain_14_another_machine_continues_with_what_is_in_the_store(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one")})
        await yard.plan(pull.number)
        await yard.approve(pull.number)
        await yard.merge(pull.number, MergeMethod.SQUASH)
        url = yard.forge.clone_access.url
        other = replace(yard.context, checkouts=open_checkouts(url, cache=tmp_path / "other machine"))
        applied = await GitopsRig(yard.rig, yard.forge, other).apply(pull.number)
        assert target_of(applied, "stack:web").state is APPLIED


async def test_owners_and_checks_of_the_base_branch_hold_up_what_lacks_them(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        rules = f"owners: [{yard.rig.team}, {yard.rig.repository.partition('/')[0]}/nobody], checks: [lint]"
        await yard.rig.commit("main", {"stackyard.yaml": f"gitops: {{{rules}}}\n"})
        pull = await yard.open_pull("more", {WEB: stack("one"), "stackyard.yaml": "gitops: {approvals: 0}\n"})
        await yard.plan(pull.number)
        shown = await yard.our_comment(pull.number)
        assert f"the approval of an owner: `{yard.rig.team}`" in shown
        assert "the check `lint`" in shown
        await yard.approve(pull.number)
        status = CommitStatus(context="lint", state=CommitState.SUCCESS)
        await yard.forge.set_status(pull.head, status)
        await yard.plan(pull.number)
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.SUCCESS
        await yard.merge(pull.number)
        assert target_of(await yard.apply(pull.number), "stack:web").state is APPLIED
