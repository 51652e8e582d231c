"""A repository of stacks on a real Gitea, people there, and the work of GitOps on its pull requests."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from tests.support.engine import find_real
from tests.support.gitea_rig import GiteaRig, open_gitea_rig

from stackyard.clients.forge.model import Comment, CommitState, MergeMethod, PullRequest
from stackyard.clients.forge.protocol import Forge
from stackyard.engine.version import Flavour
from stackyard.gitops.checkout import open_checkouts
from stackyard.gitops.context import GitopsContext
from stackyard.gitops.flow import apply_pull, plan_pull
from stackyard.gitops.model import PullPlan, TargetPlan
from stackyard.sources.store import ChosenStore

__all__ = ["GitopsRig", "open_gitops", "stack", "target_of"]

_OURS = 'terraform {\n  backend "http" {}\n}\n'


def stack(*names: str, more: str = "") -> str:
    """Return the code of a stack whose state is ours, with a resource of each name."""
    resources = "".join(f'resource "terraform_data" "{name}" {{ input = "{name}" }}\n' for name in names)
    return f"{_OURS}{resources}{dedent(more)}"


@dataclass
class GitopsRig:
    """One repository on a forge, and what works on its pull requests."""

    rig: GiteaRig
    forge: Forge
    context: GitopsContext

    async def open_pull(self, branch: str, files: Mapping[str, str | None]) -> PullRequest:
        """Open a pull request of the author."""
        await self.rig.commit(branch, files)
        made = await self.rig._ask(
            self.rig.author, "POST", "/pulls", {"title": f"Change {branch}", "head": branch, "base": "main"}
        )
        return await self.forge.pull(int(made["number"]))

    async def plan(self, number: int, *, force: bool = False) -> PullPlan:
        return await plan_pull(self.context, number, force=force)

    async def apply(self, number: int) -> PullPlan:
        return await apply_pull(self.context, number)

    async def approve(self, number: int) -> None:
        pull = await self.forge.pull(number)
        await self.rig.review(self.rig.reviewer, number, "approve", pull.head)

    async def merge(self, number: int, method: MergeMethod = MergeMethod.MERGE) -> str:
        pull = await self.forge.pull(number)
        return await self.forge.merge(number, pull.head, method)

    async def say(self, number: int, text: str, *, who: str = "") -> int:
        return await self.rig.say(who or self.rig.reviewer, number, text)

    async def our_comments(self, number: int) -> list[Comment]:
        return [one for one in await self.forge.comments(number) if one.author == self.rig.bot]

    async def our_comment(self, number: int) -> str:
        """Return the text of the one comment that is ours."""
        [comment] = await self.our_comments(number)
        return comment.body

    async def statuses(self, number: int) -> dict[str, CommitState]:
        pull = await self.forge.pull(number)
        return {one.context: one.state for one in await self.forge.statuses(pull.head)}

    async def apply_new(self, branch: str, files: Mapping[str, str | None]) -> PullPlan:
        """Bring files to the base branch as everything comes there: planned, approved, merged, applied."""
        pull = await self.open_pull(branch, files)
        await self.plan(pull.number)
        await self.approve(pull.number)
        await self.merge(pull.number)
        return await self.apply(pull.number)


def target_of(plan: PullPlan, name: str) -> TargetPlan:
    """Return what a plan knows of a target."""
    return next(one for one in plan.targets if one.target == name)


@contextlib.asynccontextmanager
async def open_gitops(folder: Path, files: Mapping[str, str]) -> AsyncIterator[GitopsRig]:
    """Give a repository with files on its base branch."""
    tofu = await asyncio.to_thread(find_real, Flavour.TOFU)
    if not isinstance(tofu, str):
        os.environ["STACKYARD_TOFU"] = str(tofu.path)
    async with open_gitea_rig() as rig:
        await rig.commit("main", files)
        async with rig.open() as forge:
            checkouts = open_checkouts(forge.clone_access.url, cache=folder / "cache")
            store = ChosenStore(base=folder / "control" / ".stackyard")
            context = GitopsContext(forge=forge, checkouts=checkouts, store=store)
            yield GitopsRig(rig, forge, context)
