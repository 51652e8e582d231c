"""Pull requests when something goes wrong, on a real Gitea: nothing twice, nothing that was not shown."""

from __future__ import annotations

import asyncio
import base64
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.gitops_jobs import run_job, start_job
from tests.support.gitops_rig import GitopsRig, open_gitops, stack, target_of

from stackyard.clients.forge.model import CommitState, MergeMethod
from stackyard.gitops.context import OwnEnvironment
from stackyard.gitops.model import Credentials, TargetState
from stackyard.gitops.record import PullRecords
from stackyard.gitops.runs import TargetRun, run_verb
from stackyard.gitops.settings import GitopsSettingsError

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

WEB, DB = "stacks/web/main.tf", "stacks/db/main.tf"
RULES = "stackyard.yaml"
CHANGES, APPLIED, FAILED = TargetState.CHANGES, TargetState.APPLIED, TargetState.FAILED


async def test_code_that_could_do_more_waits_for_somebody_with_the_right_and_for_that_commit(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "it ran"
    program = f'data "external" "x" {{ program = ["touch", "{mark}"] }}\n'
    async with open_gitops(tmp_path, {WEB: stack(), RULES: "gitops: {allow_code: write}\n"}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one", more=program)})
        blocked = target_of(await yard.plan(pull.number), "stack:web")
        assert (blocked.state, bool(blocked.document)) == (TargetState.BLOCKED, False)
        assert {one.line for one in blocked.findings} >= {5}
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.FAILURE
        # The commit before says nothing of the next one, and a reader has no right.
        await yard.say(pull.number, f"stackyard allow code {pull.head}", who=yard.rig.reader)
        await yard.say(pull.number, f"stackyard allow code {'0' * 40}")
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.BLOCKED
        assert not mark.exists()
        await yard.rig.commit("more", {WEB: stack("one", more="# no program\n")})
        assert target_of(await yard.plan(pull.number), "stack:web").state is CHANGES
        # Nobody trusts what the pull request itself says of the rules.
        await yard.rig.commit("more", {WEB: stack("two", more=program), RULES: "gitops: {approvals: 0}\n"})
        head = (await yard.forge.pull(pull.number)).head
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.BLOCKED
        await yard.say(pull.number, f"stackyard allow code {head}")
        allowed = target_of(await yard.plan(pull.number), "stack:web")
        # It was run, or the engine could not load what runs it: it is no longer held back.
        assert allowed.state in (CHANGES, FAILED)
        assert not allowed.findings


async def test_a_failure_stops_what_depends_on_it_and_is_continued_by_the_next_change(tmp_path: Path) -> None:
    failing = """
        resource "terraform_data" "bad" {
          input = "x"
          lifecycle {
            postcondition {
              condition     = self.id == "never"
              error_message = "The engine says no."
            }
          }
        }
    """
    files = {
        WEB: stack("one", more=failing),
        DB: stack("two"),
        "stacks/db/stack.yaml": "after: [web]\n",
        "stacks/apart/main.tf": stack("three"),
    }
    async with open_gitops(tmp_path, {"README.md": "x\n"}) as yard:
        ended = await yard.apply_new("all", files)
        states = {one.target: one.state for one in ended.targets}
        assert states == {"stack:web": FAILED, "stack:db": CHANGES, "stack:apart": APPLIED}
        shown = await yard.our_comment(1)
        assert "The engine says no" not in shown
        assert (await yard.statuses(1))["stackyard"] is CommitState.FAILURE
        # Nothing is applied again by asking again.
        again = await yard.apply(1)
        assert {one.target: one.state for one in again.targets} == states
        mended = stack("one", more=failing.replace('== "never"', '!= "never"'))
        await yard.apply_new("mend", {WEB: mended})
        # What was left is planned on what is there by now, and approved for itself.
        planned = await yard.plan(1, force=True)
        assert {one.target: one.state for one in planned.targets} == {
            "stack:web": TargetState.UNCHANGED,
            "stack:db": CHANGES,
            "stack:apart": APPLIED,
        }
        await yard.say(1, "stackyard apply")
        assert target_of(await yard.apply(1), "stack:db").state is APPLIED


@dataclass
class Pushing:
    """Credentials that are asked for while somebody pushes."""

    yard: GitopsRig
    text: str
    pushed: list[str] = field(default_factory=list)

    def environment(self, target: str, which: Credentials) -> Mapping[str, str]:
        if not self.pushed:
            path = f"/contents/{WEB}"
            there = self.yard.rig._call(self.yard.rig.author, "GET", f"{path}?ref=more")
            content = base64.b64encode(self.text.encode()).decode()
            change: dict[str, Any] = {"branch": "more", "sha": there["sha"], "content": content}
            made = self.yard.rig._call(self.yard.rig.author, "PUT", path, change)
            self.pushed.append(made["commit"]["sha"])
        return OwnEnvironment().environment(target, which)


async def test_a_push_during_the_plan_leaves_only_the_newest_commit_shown(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("old")})
        pushing = Pushing(yard, stack("new"))
        busy = GitopsRig(yard.rig, yard.forge, replace(yard.context, credentials=pushing))
        planned = await busy.plan(pull.number)
        assert planned.head == pushing.pushed[0]
        shown = await yard.our_comment(pull.number)
        assert ("terraform_data.new" in shown, "terraform_data.old" in shown) == (True, False)


async def test_several_commits_that_are_rebased_are_what_was_planned(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one")})
        await yard.rig.commit("more", {DB: stack("two")})
        await yard.plan(pull.number)
        await yard.approve(pull.number)
        await yard.merge(pull.number, MergeMethod.REBASE)
        applied = await yard.apply(pull.number)
        assert {one.state for one in applied.targets} == {APPLIED}


async def test_what_was_merged_without_a_plan_is_shown_before_it_is_applied(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one")})
        await yard.merge(pull.number)
        assert target_of(await yard.apply(pull.number), "stack:web").state is CHANGES
        assert "1 more approval" in await yard.our_comment(pull.number)
        await yard.say(pull.number, "stackyard apply", who=yard.rig.author)
        assert target_of(await yard.apply(pull.number), "stack:web").state is CHANGES
        await yard.say(pull.number, "stackyard apply")
        assert target_of(await yard.apply(pull.number), "stack:web").state is APPLIED


async def test_drafts_and_forks_are_planned_only_where_the_base_branch_says_so(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        draft = await yard.open_pull("more", {WEB: stack("one")})
        await yard.rig.set_draft(draft.number, True)
        assert (await yard.plan(draft.number)).targets == ()
        assert "It is a draft" in await yard.our_comment(draft.number)
        assert (await yard.statuses(draft.number))["stackyard"] is CommitState.PENDING
        number = await yard.rig.fork_pull("evil", {WEB: stack("two")})
        assert (await yard.plan(number)).targets == ()
        assert "from a fork" in await yard.our_comment(number)
        await yard.rig.commit("main", {RULES: "gitops: {forks: true, allow_code: write}\n"})
        planned = target_of(await yard.plan(number), "stack:web")
        # What is planned without state and secrets is not saved: it can only be read.
        assert (planned.state, planned.plan) == (CHANGES, "")
        head = (await yard.forge.pull(number)).head
        await yard.say(number, f"stackyard allow code {head}")
        assert target_of(await yard.plan(number), "stack:web").plan.startswith("store:")


async def test_commands_do_what_the_server_does_and_go_on_where_one_was_killed(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one")})
        number = str(pull.number)
        planned = await run_job(yard, tmp_path, "plan", number)
        assert [one["state"] for one in planned["targets"]] == ["changes"]
        await yard.approve(pull.number)
        await yard.merge(pull.number)
        # Killed where it is recorded that something is being applied, and nobody knows how far it came.
        records = PullRecords(yard.context.store, yard.rig.repository)
        started = await asyncio.to_thread(start_job, yard, tmp_path, "apply", number)
        while True:
            known = await asyncio.to_thread(records.get, pull.number)
            assert known is not None
            state = known.plan.targets[0].state
            if state in (TargetState.APPLYING, APPLIED) or started.poll() is not None:
                break
            await asyncio.sleep(0.02)
        assert state is TargetState.APPLYING
        started.send_signal(signal.SIGKILL)
        await asyncio.to_thread(started.communicate)
        ended = await run_job(yard, tmp_path, "apply", number)
        assert [one["state"] for one in ended["targets"]] == ["applied"]
        status = await run_job(yard, tmp_path, "status", number)
        assert status == ended
        # Nothing was made twice: nothing is left to do, and there is one of it.
        drifted = await yard.open_pull("again", {WEB: stack("one", "two")})
        counted = target_of(await yard.plan(drifted.number), "stack:web").document["changes"]
        assert [one["address"] for one in counted] == ["terraform_data.two"]


async def test_a_state_that_moved_after_the_approval_asks_again_and_says_so(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        await yard.apply_new("first", {WEB: stack("one")})
        pull = await yard.open_pull("more", {WEB: stack("one", "two")})
        await yard.plan(pull.number)
        await yard.approve(pull.number)
        # Somebody applies by hand meanwhile.
        context = yard.context
        tip = await yard.forge.branch_tip("main")
        assert tip is not None
        async with context.checkouts.at(tip) as checkout:
            permit = ("--allow-destroy", "terraform_data.one")
            replacing = TargetRun(
                verb="apply", target="stack:web", words=(*permit, "--", "-replace=terraform_data.one")
            )
            answer = await run_verb(context, checkout, replacing)
            assert answer.document["applied"]["add"] == 1, answer.error
        await yard.merge(pull.number)
        moved = await yard.apply(pull.number)
        assert target_of(moved, "stack:web").state is CHANGES
        shown = await yard.our_comment(pull.number)
        assert "Since the plan was made, the state was" in shown
        assert "1 more approval" in shown
        await yard.say(pull.number, "stackyard apply")
        assert target_of(await yard.apply(pull.number), "stack:web").state is APPLIED


async def test_a_conflict_and_a_broken_rule_plan_nothing_and_say_why(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        pull = await yard.open_pull("broken", {RULES: "roots: [nowhere]\ngitops: {approvals: -1}\n"})
        assert (await yard.plan(pull.number)).targets == ()
        assert "It cannot be planned: `" in await yard.our_comment(pull.number)
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.PENDING
        pull = await yard.open_pull("more", {WEB: stack("mine")})
        await yard.rig.commit("main", {WEB: stack("theirs")})
        planned = await yard.plan(pull.number)
        assert planned.targets == ()
        assert f"resolve the conflicts in `{WEB}`" in await yard.our_comment(pull.number)
        await yard.rig.commit("main", {RULES: "gitops: {approvals: many}\n"})
        with pytest.raises(GitopsSettingsError, match="approvals"):
            await yard.plan(pull.number)
