"""The rigs for the contract of forges on the doubles of GitHub and GitLab."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from tests.support.forge_double import ForgeDouble
from tests.support.forge_world import ForgeWorld
from tests.support.forges import ForgeRig
from tests.support.github_server import GithubServer
from tests.support.gitlab_server import GitlabServer
from tests.support.openapi import find_openapi, find_webhooks, require

from stackyard.clients.forge.model import ForgeKind

__all__ = [
    "DoubleRig",
    "GithubRig",
    "GitlabRig",
    "make_world",
    "open_described_github_rig",
    "open_github_rig",
    "open_gitlab_rig",
]


def make_world(levels: Mapping[str, str], repository: str = "yard/infra") -> ForgeWorld:
    """Return a repository with its first commit, and people with a token each."""
    world = ForgeWorld(repository, levels=dict(levels))
    for login in ("bot", "author", "reviewer", "reader", "stranger"):
        world.tokens[f"token-of-{login}"] = login
    world.teams[f"{world.owner}/keepers"] = {"reviewer"}
    world.commit("main", {"README.md": "A yard.\n", "web/main.tf": "# nothing yet\n"})
    return world


class DoubleRig(ForgeRig):
    """A repository on a double: what people do changes what it keeps."""

    def __init__(self, server: ForgeDouble) -> None:
        self.server = server
        self.world = server.world
        super().__init__(server.url, self.world.repository, "token-of-bot")
        self.team = f"{self.world.owner}/keepers"

    async def commit(self, branch: str, files: Mapping[str, str | None], *, moved: str = "") -> str:
        return self.world.commit(branch, files, moved=moved, who=self.author)

    async def review(self, who: str, number: int, verdict: str, commit: str) -> None:
        self.world.review(who, number, verdict, commit)

    async def take_back(self, who: str, number: int) -> None:
        reviews = [review for review in self.world.pulls[number].reviews if review.author == who]
        reviews[-1].is_dismissed = True

    async def say(self, who: str, number: int, text: str) -> int:
        return self.world.say(who, number, text).id

    async def remove_comment(self, number: int, id_: int) -> None:
        del self.world.comments[id_]

    async def set_draft(self, number: int, is_draft: bool) -> None:
        self.world.pulls[number].is_draft = is_draft

    async def fork_pull(self, branch: str, files: Mapping[str, str | None]) -> int:
        self.world.commit(f"{self.stranger}:{branch}", files, who=self.stranger)
        pull = self.world.open_pull(
            "From a fork", "", branch, "main", self.stranger, head_owner=self.stranger
        )
        return pull.number

    async def revoke(self) -> None:
        del self.world.tokens[self.token]


class GithubRig(DoubleRig):
    """A repository on the double of GitHub."""

    kind = ForgeKind.GITHUB
    can_require: ClassVar[Mapping[str, Any]] = {
        "blocks_pushes": True,
        "binds_admins": True,
        "checks": ("stackyard", "lint"),
        "approvals": 2,
        "dismisses_stale": True,
        "requires_up_to_date": True,
    }


class GitlabRig(DoubleRig):
    """A project on the double of GitLab."""

    kind = ForgeKind.GITLAB
    can_require: ClassVar[Mapping[str, Any]] = {
        "blocks_pushes": True,
        "binds_admins": True,
        "requires_all_checks": True,
        "approvals": 2,
        "dismisses_stale": True,
        "requires_up_to_date": True,
    }


LEVELS = {"bot": "admin", "author": "write", "reviewer": "write", "reader": "read"}


@contextlib.asynccontextmanager
async def open_github_rig() -> AsyncIterator[GithubRig]:
    """Open one that is not held against the description."""
    server = GithubServer(make_world(LEVELS))
    async with server.serve():
        yield GithubRig(server)
    assert not server.violations, server.violations


@contextlib.asynccontextmanager
async def open_described_github_rig() -> AsyncIterator[GithubRig]:
    """Open one whose requests, answers and webhooks are held against what GitHub publishes."""
    rest, webhooks = require(find_openapi()), require(find_webhooks())
    server = GithubServer(make_world(LEVELS), rest=rest, webhooks=webhooks)
    async with server.serve():
        yield GithubRig(server)
    assert not server.violations, server.violations


@contextlib.asynccontextmanager
async def open_gitlab_rig() -> AsyncIterator[GitlabRig]:
    levels = {"bot": "maintainer", "author": "developer", "reviewer": "developer", "reader": "reporter"}
    server = GitlabServer(make_world(levels, "yard/onprem/infra"))
    async with server.serve():
        yield GitlabRig(server)
    assert not server.violations, server.violations
