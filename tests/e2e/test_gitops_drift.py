"""Drift on a real Gitea: one issue for each target, opened, edited, opened again, closed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.cli import stackyard
from tests.support.gitops_rig import GitopsRig, open_gitops, stack

from stackyard.gitops.drift import DriftState, find_drift, list_drift_targets, open_base
from stackyard.gitops.model import PullPlan

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

WEB = "stacks/web/main.tf"


async def look(yard: GitopsRig) -> tuple[DriftState, int]:
    async with open_base(yard.context) as checkout:
        found = await find_drift(yard.context, checkout, "stack:web")
    return found.state, found.issue


async def test_one_issue_follows_the_drift_of_a_target(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {WEB: stack()}) as yard:
        assert await list_drift_targets(yard.context) == ()
        plan: PullPlan = await yard.apply_new("more", {WEB: stack("one")})
        assert [one.state.value for one in plan.targets] == ["applied"]
        assert await list_drift_targets(yard.context) == ("stack:web",)
        assert await look(yard) == (DriftState.NONE, 0)

        # What is on the base branch and not applied is a difference like one that was made by hand.
        await yard.rig.commit("main", {WEB: stack("one", "two")})
        state, number = await look(yard)
        assert (state, number > 0) == (DriftState.DRIFT, True)
        (issue,) = await yard.forge.find_issues("drift of stack:web")
        assert (issue.number, issue.title) == (number, "Drift: stack:web")
        assert "+ create terraform_data.two" in issue.body
        assert await look(yard) == (DriftState.DRIFT, number)

        await yard.rig.commit("main", {WEB: stack("one", "three")})
        await yard.forge.edit_issue(number, is_open=False)
        assert await look(yard) == (DriftState.DRIFT, number)
        (issue,) = await yard.forge.find_issues("drift of stack:web")
        assert "+ create terraform_data.three" in issue.body

        # One that cannot be planned says nothing about drift.
        await yard.rig.commit("main", {WEB: "resource {"})
        assert await look(yard) == (DriftState.UNKNOWN, number)

        place = ("--forge", "gitea", "--url", yard.rig.server.url, "--repository", yard.rig.repository)
        token = {"STACKYARD_FORGE_TOKEN": yard.rig.users["bot"].token}
        control = tmp_path / "control"
        ended = await asyncio.to_thread(
            stackyard, "gitops", "drift", *place, "--json", cwd=control, env=token
        )
        assert ended.status == 1
        (row,) = ended.document["targets"]
        assert (row["target"], row["state"], row["issue"]) == ("stack:web", "unknown", number)

        await yard.rig.commit("main", {WEB: stack("one")})
        assert await look(yard) == (DriftState.NONE, 0)
        assert await yard.forge.find_issues("drift of stack:web") == ()
        (closed,) = await yard.forge.find_issues("drift of stack:web", is_open=False)
        assert closed.number == number
