"""Jobs of a matrix plan one pull request of a real Gitea at once, and one comment shows all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.support.gitops_jobs import run_job
from tests.support.gitops_rig import GitopsRig, open_gitops, stack, target_of

from stackyard.clients.forge.model import CommitState
from stackyard.gitops.model import TargetState
from stackyard.gitops.part_store import PullParts

pytestmark = [pytest.mark.tofu, pytest.mark.judges("gitea"), pytest.mark.timeout(300)]

WEB, DB, APP = "stacks/web/main.tf", "stacks/db/main.tf", "stacks/app/main.tf"
BAD = dedent("""
    resource "terraform_data" "bad" {
      input = file("${path.module}/absent")
    }
""")


async def _at_once(yard: GitopsRig, folder: Path, *jobs: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run commands as jobs do: at the same time, each a process of its own."""
    return await asyncio.gather(*(run_job(yard, folder, *words) for words in jobs))


def _plans(documents: list[dict[str, Any]]) -> dict[str, str]:
    return {one["target"]: one["plan"] for said in documents for one in said["targets"]}


async def test_two_jobs_plan_at_once_and_the_last_one_only_shows(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {"README.md": "x\n"}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one"), DB: stack("two")})
        number = str(pull.number)
        selected = await run_job(yard, tmp_path, "targets", number)
        assert selected["targets"] == ["stack:db", "stack:web"]
        assert (await yard.statuses(pull.number))["stackyard"] is CommitState.PENDING
        jobs = [("plan", number, "--target", name) for name in selected["targets"]]
        made = _plans(await _at_once(yard, tmp_path, *jobs))
        assert all(plan.startswith("store:") for plan in made.values())
        # Nothing is at the forge yet, and nothing is left to be planned.
        assert await yard.our_comments(pull.number) == []
        assert (await run_job(yard, tmp_path, "targets", number))["targets"] == []

        shown = await run_job(yard, tmp_path, "plan", number)
        assert _plans([shown]) == made
        text = await yard.our_comment(pull.number)
        assert ("terraform_data.one" in text, "terraform_data.two" in text) == (True, True)
        parts = PullParts(yard.context.store, yard.rig.repository, pull.number)
        assert parts.list() == ()
        await yard.approve(pull.number)
        await yard.merge(pull.number)
        applied = await run_job(yard, tmp_path, "apply", number)
        assert {one["state"] for one in applied["targets"]} == {"applied"}


async def test_jobs_of_one_target_make_one_plan_and_parts_miss_no_target(tmp_path: Path) -> None:
    async with open_gitops(tmp_path, {"README.md": "x\n"}) as yard:
        pull = await yard.open_pull("more", {WEB: stack("one"), DB: stack("two"), APP: stack("three")})
        number = str(pull.number)
        twice = await _at_once(yard, tmp_path, *[("plan", number, "--target", "stack:web")] * 2)
        assert twice[0]["targets"][0]["plan"] == twice[1]["targets"][0]["plan"]
        made = _plans(await _at_once(yard, tmp_path, *[("plan", number, "--part", f"{k}/2") for k in (1, 2)]))
        assert made["stack:web"] == twice[0]["targets"][0]["plan"]
        assert _plans([await run_job(yard, tmp_path, "plan", number)]) == made
        assert sorted(made) == ["stack:app", "stack:db", "stack:web"]


async def test_what_waits_fails_or_is_of_another_commit_is_never_taken_for_a_plan(tmp_path: Path) -> None:
    taking = {
        APP: stack("app", more='variable "web" { type = any }\n'),
        "stacks/app/stack.yaml": "after: [{stack: web, outputs: [id]}]\n",
    }
    web = stack("one", more='output "id" { value = terraform_data.one.id }\n')
    async with open_gitops(tmp_path, {"README.md": "x\n"}) as yard:
        pull = await yard.open_pull("more", {WEB: web, DB: stack("two", more=BAD), **taking})
        number = str(pull.number)
        listed = (await run_job(yard, tmp_path, "targets", number))["targets"]
        assert listed == ["stack:db", "stack:web"]
        old = await run_job(yard, tmp_path, "plan", number, "--target", "stack:web")
        await run_job(yard, tmp_path, "plan", number, "--target", "stack:db", status=1)
        refused = await run_job(yard, tmp_path, "plan", number, "--target", "stack:gone", status=65)
        assert refused["error"]["code"] == "E-GITOPS-TARGET"
        planned = await yard.plan(pull.number)
        assert target_of(planned, "stack:web").plan == old["targets"][0]["plan"]
        assert target_of(planned, "stack:db").state is TargetState.FAILED
        assert target_of(planned, "stack:app").state is TargetState.WAITING

        # What failed is tried again by the next run; another commit is planned whole.
        assert (await run_job(yard, tmp_path, "targets", number))["targets"] == ["stack:db"]
        await run_job(yard, tmp_path, "plan", number, "--target", "stack:web", "--force")
        await yard.rig.commit("more", {DB: stack("two")})
        newer = await yard.plan(pull.number)
        assert target_of(newer, "stack:db").state is TargetState.CHANGES
        assert newer.head != pull.head
        assert target_of(newer, "stack:web").plan != old["targets"][0]["plan"]
