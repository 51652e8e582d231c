"""A pull request on a real Gitea: planned on its merge, shown, approved, merged, and exactly that applied."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.gitops_rig import open_gitops, stack, target_of

from stackyard.clients.forge.model import CommitState
from stackyard.gitops.model import TargetState

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]


async def test_a_pull_request_shows_its_plan_and_the_merge_applies_exactly_that(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {"stacks/web/main.tf": stack()}) as yard:
        pull = await yard.open_pull("more", {"stacks/web/main.tf": stack("one", "two")})
        planned = await yard.plan(pull.number)
        web = target_of(planned, "stack:web")
        assert (web.state, web.plan.startswith("store:")) == (TargetState.CHANGES, True)
        shown = await yard.our_comment(pull.number)
        assert "2 to create" in shown
        assert "1 more approval of this plan" in shown
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.PENDING

        await yard.approve(pull.number)
        again = await yard.plan(pull.number)
        assert target_of(again, "stack:web").plan == web.plan
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.SUCCESS

        assert target_of(await yard.apply(pull.number), "stack:web").state is TargetState.CHANGES
        await yard.merge(pull.number)
        applied = target_of(await yard.apply(pull.number), "stack:web")
        assert applied.state is TargetState.APPLIED, await yard.our_comment(pull.number)
        assert applied.outcome["applied"] == {"add": 2, "change": 0, "remove": 0}
        assert "applied: 2 created" in await yard.our_comment(pull.number)
        assert target_of(await yard.apply(pull.number), "stack:web") == applied


async def test_pain_04_a_removed_stack_is_a_plan_that_destroys_it_once_somebody_says_so(
    tmp_path: Path,
) -> None:
    async with open_gitops(tmp_path, {"stacks/web/main.tf": stack(), "stacks/db/main.tf": stack()}) as yard:
        first = await yard.apply_new("more", {"stacks/web/main.tf": stack("one", "two")})
        assert target_of(first, "stack:web").state is TargetState.APPLIED
        pull = await yard.open_pull("less", {"stacks/web/main.tf": None})
        refused = target_of(await yard.plan(pull.number), "stack:web")
        assert (refused.state, refused.is_removed) == (TargetState.REFUSED, True), refused
        shown = await yard.our_comment(pull.number)
        assert "stackyard allow destroy stack:web" in shown
        assert "- destroy terraform_data.one" in shown
        # Only who may write can say so.
        await yard.say(pull.number, "stackyard allow destroy stack:web", who=yard.rig.reader)
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.REFUSED
        await yard.say(pull.number, "stackyard allow destroy stack:web")
        allowed = target_of(await yard.plan(pull.number), "stack:web")
        assert (allowed.state, allowed.allowed) == (TargetState.CHANGES, ("destroy stack:web",))
        # Of another commit it has to be said again.
        await yard.rig.commit("less", {"stacks/db/more.tf": "# nothing\n"})
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.REFUSED
        await yard.say(pull.number, "stackyard allow destroy stack:web")
        assert target_of(await yard.plan(pull.number), "stack:web").state is TargetState.CHANGES
        await yard.approve(pull.number)
        await yard.merge(pull.number)
        gone = target_of(await yard.apply(pull.number), "stack:web")
        assert gone.state is TargetState.APPLIED, await yard.our_comment(pull.number)
        assert gone.outcome["applied"]["remove"] == 2
