"""A forge in memory, for tests of what is built on one: real ones judge the adapters.

It can be slow, away, or limit requests: `fail` holds what the next calls raise, `delay_s` how long each
takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from stackyard.clients.forge.failures import ForgeError, ForgeNotFoundError
from stackyard.clients.forge.model import (
    ChangedFile,
    CloneAccess,
    Comment,
    CommitStatus,
    ForgeKind,
    ForgeLimits,
    ForgeRepository,
    Issue,
    MergeMethod,
    Permission,
    Protection,
    PullRequest,
    PullState,
    Review,
)

__all__ = ["BOT", "MemoryForge", "sign"]

BOT = "stackyard-bot"


def sign(body: bytes, secret: str, event: str = "pull_request", delivery: str = "d-1") -> dict[str, str]:
    """Return the headers with which Gitea sends a body."""
    return {
        "Content-Type": "application/json",
        "X-Gitea-Event": event,
        "X-Gitea-Delivery": delivery,
        "X-Gitea-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }


@dataclass
class MemoryForge:
    """One repository."""

    name: str = "home/infra"
    kind: ForgeKind = ForgeKind.GITEA
    delay_s: float = 0.0
    fail: list[ForgeError] = field(default_factory=list)
    is_away: ForgeError | None = None
    tips: dict[str, str] = field(default_factory=lambda: {"main": "a" * 40})
    all_pulls: dict[int, PullRequest] = field(default_factory=dict)
    all_comments: dict[int, list[Comment]] = field(default_factory=dict)
    all_statuses: dict[str, list[CommitStatus]] = field(default_factory=dict)
    all_issues: dict[int, Issue] = field(default_factory=dict)
    all_reviews: dict[int, list[Review]] = field(default_factory=dict)
    protections: dict[str, Protection] = field(default_factory=dict)
    rights: dict[str, Permission] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    teams: dict[str, set[str]] = field(default_factory=dict)
    hooks: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    moment: int = 0

    @property
    def limits(self) -> ForgeLimits:
        return ForgeLimits(comment_chars=65_000, context_chars=255, description_chars=140)

    @property
    def clone_access(self) -> CloneAccess:
        return CloneAccess(url="https://forge.test/home/infra.git", headers={})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    # --- What people do

    def tick(self) -> str:
        self.moment += 1
        return f"2030-01-01T{self.moment // 3600:02}:{self.moment // 60 % 60:02}:{self.moment % 60:02}Z"

    def add_pull(self, number: int, *, head: str = "", **more: Any) -> PullRequest:
        pull = PullRequest(
            number=number,
            title=f"change {number}",
            author=more.pop("author", "ann"),
            state=more.pop("state", PullState.OPEN),
            is_draft=False,
            head=head or f"{number:040x}",
            head_branch=f"work-{number}",
            head_repository=self.name,
            base_branch="main",
            base=self.tips["main"],
            repository=self.name,
            updated_at=self.tick(),
            **more,
        )
        self.all_pulls[number] = pull
        return pull

    def change(self, number: int, **more: Any) -> PullRequest:
        self.all_pulls[number] = dataclasses.replace(self.all_pulls[number], updated_at=self.tick(), **more)
        return self.all_pulls[number]

    def say(self, number: int, author: str, body: str, *, is_edited: bool = False) -> Comment:
        at = self.tick()
        comment = Comment(
            id=sum(map(len, self.all_comments.values())) + 1,
            author=author,
            body=body,
            created_at=at,
            updated_at=self.tick() if is_edited else at,
        )
        self.all_comments.setdefault(number, []).append(comment)
        if number in self.all_pulls:
            self.change(number)
        return comment

    # --- What we ask

    async def _asked(self, what: str) -> None:
        self.calls.append(what)
        await asyncio.sleep(self.delay_s)
        if self.is_away is not None:
            raise self.is_away
        if self.fail:
            raise self.fail.pop(0)

    async def login(self) -> str:
        return BOT

    async def repository(self) -> ForgeRepository:
        await self._asked("repository")
        return ForgeRepository(name=self.name, default_branch="main", clone_url="", url="")

    async def branch_tip(self, branch: str) -> str | None:
        await self._asked("branch_tip")
        return self.tips.get(branch)

    async def pull(self, number: int) -> PullRequest:
        await self._asked(f"pull {number}")
        if number not in self.all_pulls:
            raise ForgeNotFoundError(f"There is no pull request {number}.", status=404)
        return self.all_pulls[number]

    async def pulls(
        self, state: PullState = PullState.OPEN, *, base: str = "", updated_after: str = ""
    ) -> Sequence[PullRequest]:
        await self._asked(f"pulls {state}")
        found = [
            pull
            for pull in self.all_pulls.values()
            if pull.state is state and base in ("", pull.base_branch) and pull.updated_at > updated_after
        ]
        return tuple(sorted(found, key=lambda pull: pull.updated_at, reverse=True))

    async def open_pull(self, title: str, body: str, head_branch: str, base_branch: str) -> PullRequest:
        await self._asked("open_pull")
        del title, body, base_branch
        number = max(self.all_pulls, default=0) + 1
        return dataclasses.replace(self.add_pull(number), head_branch=head_branch)

    async def merge(self, number: int, head: str, method: MergeMethod = MergeMethod.MERGE) -> str:
        await self._asked("merge")
        del head, method
        self.change(number, state=PullState.MERGED, merge_commit="b" * 40)
        return "b" * 40

    async def merged_pull(self, commit: str) -> PullRequest | None:
        await self._asked("merged_pull")
        return next((pull for pull in self.all_pulls.values() if pull.merge_commit == commit), None)

    async def changed_files(self, number: int) -> Sequence[ChangedFile]:
        await self._asked("changed_files")
        del number
        return ()

    async def reviews(self, number: int) -> Sequence[Review]:
        await self._asked("reviews")
        return tuple(self.all_reviews.get(number, ()))

    async def permission(self, login: str) -> Permission:
        await self._asked("permission")
        if login in self.gone:
            raise ForgeNotFoundError(f"There is no user {login}.")
        return self.rights.get(login, Permission.NONE)

    async def is_member(self, team: str, login: str) -> bool:
        await self._asked("is_member")
        return login in self.teams.get(team, set())

    async def comments(self, number: int, *, after: int = 0) -> Sequence[Comment]:
        await self._asked(f"comments {number}")
        return tuple(one for one in self.all_comments.get(number, ()) if one.id > after)

    async def comment(self, number: int, id_: int) -> Comment | None:
        await self._asked("comment")
        return next((one for one in self.all_comments.get(number, ()) if one.id == id_), None)

    async def create_comment(self, number: int, body: str) -> Comment:
        await self._asked("create_comment")
        return self.say(number, BOT, body)

    async def edit_comment(self, number: int, id_: int, body: str) -> Comment | None:
        await self._asked("edit_comment")
        comments = self.all_comments.get(number, [])
        for place, one in enumerate(comments):
            if one.id == id_:
                comments[place] = dataclasses.replace(one, body=body, updated_at=self.tick())
                with contextlib.suppress(KeyError):
                    self.change(number)
                return comments[place]
        return None

    async def statuses(self, commit: str) -> Sequence[CommitStatus]:
        await self._asked("statuses")
        return tuple({one.context: one for one in self.all_statuses.get(commit, ())}.values())

    async def set_status(self, commit: str, status: CommitStatus) -> None:
        await self._asked("set_status")
        self.all_statuses.setdefault(commit, []).append(status)

    async def protection(self, branch: str) -> Protection | None:
        await self._asked("protection")
        return self.protections.get(branch)

    async def protect(self, protection: Protection) -> None:
        await self._asked("protect")
        self.protections[protection.branch] = protection

    async def find_issues(self, words: str, *, is_open: bool = True) -> Sequence[Issue]:
        await self._asked("find_issues")
        found = [
            one
            for one in self.all_issues.values()
            if one.is_open is is_open and words in f"{one.title}\n{one.body}" and one.author == BOT
        ]
        return tuple(sorted(found, key=lambda one: -one.number))

    async def create_issue(self, title: str, body: str) -> Issue:
        await self._asked("create_issue")
        number = max((*self.all_issues, *self.all_pulls), default=0) + 1
        self.all_issues[number] = Issue(number=number, title=title, body=body, is_open=True, author=BOT)
        return self.all_issues[number]

    async def edit_issue(
        self, number: int, *, title: str | None = None, body: str | None = None, is_open: bool | None = None
    ) -> Issue:
        await self._asked("edit_issue")
        if number not in self.all_issues:
            raise ForgeNotFoundError(f"There is no issue {number}.", status=404)
        given = {"title": title, "body": body, "is_open": is_open}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.all_issues[number] = dataclasses.replace(self.all_issues[number], **changes)
        return self.all_issues[number]

    async def ensure_webhook(self, url: str, secret: str) -> bool:
        await self._asked("ensure_webhook")
        del secret
        is_new = url not in self.hooks
        self.hooks = [url]
        return is_new

    def delivery(self, number: int, action: str = "opened") -> bytes:
        """Return what it sends about a pull request."""
        return json.dumps(
            {
                "action": action,
                "repository": {"full_name": self.name},
                "pull_request": {"number": number, "head": {"sha": f"{number:040x}"}},
                "sender": {"login": "ann"},
            }
        ).encode()
