"""The rig for the contract of forges on a real Gitea."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from tests.support.forges import ForgeRig
from tests.support.gitea import Gitea, GiteaUser, require_gitea

from stackyard.clients.forge.model import ForgeKind

__all__ = ["GiteaRig", "open_gitea_rig"]

_VERDICTS = {"approve": "APPROVED", "reject": "REQUEST_CHANGES", "comment": "COMMENT"}


class GiteaRig(ForgeRig):
    """A repository of an organization on a real Gitea."""

    kind = ForgeKind.GITEA
    can_require: ClassVar[Mapping[str, Any]] = {
        "blocks_pushes": True,
        "binds_admins": True,
        "checks": ("stackyard", "lint"),
        "approvals": 2,
        "dismisses_stale": True,
        "requires_up_to_date": True,
    }

    def __init__(self, server: Gitea) -> None:
        self.server = server
        names = ("bot", "author", "reviewer", "reader", "stranger")
        self.users: dict[str, GiteaUser] = {name: server.find_user(name) for name in names}
        owner = server.new_organization()
        repository = server.new_organization_repository(owner)
        super().__init__(server.url, repository, self.users["bot"].token)
        self.bot, self.author, self.reviewer, self.reader, self.stranger = (
            self.users[name].login for name in names
        )
        self.team = f"{owner}/keepers"
        server.new_team(owner, "keepers", self.users["reviewer"])
        # Only the owners of an organization may ask who is in its teams.
        server.add_owner(owner, self.users["bot"])
        for name, permission in {
            "bot": "admin",
            "author": "write",
            "reviewer": "write",
            "reader": "read",
        }.items():
            server.add_collaborator(repository, self.users[name], permission)
        self._branches: set[str] = set()

    def _call(self, who: str, method: str, path: str, body: object = None, *, repository: str = "") -> Any:
        token = next(user.token for user in self.users.values() if user.login == who)
        return self.server.call(method, f"/repos/{repository or self.repository}{path}", body, token=token)

    async def _ask(self, who: str, method: str, path: str, body: object = None, repository: str = "") -> Any:
        return await asyncio.to_thread(self._call, who, method, path, body, repository=repository)

    async def commit(
        self,
        branch: str,
        files: Mapping[str, str | None],
        *,
        moved: str = "",
        repository: str = "",
        who: str = "",
    ) -> str:
        where, who = repository or self.repository, who or self.author
        known = {one["name"] for one in await self._ask(who, "GET", "/branches?limit=50", None, where) or ()}
        start = branch if branch in known else "main"
        changes = [await self._describe(who, where, start, name, text, moved) for name, text in files.items()]
        document: dict[str, Any] = {"files": changes, "message": f"Change {', '.join(files)}"}
        if known:
            document |= {"branch": start} | ({"new_branch": branch} if branch != start else {})
        made = await self._ask(who, "POST", "/contents", document, where)
        return str(made["commit"]["sha"])

    async def _describe(
        self, who: str, where: str, start: str, name: str, text: str | None, moved: str
    ) -> dict[str, Any]:
        try:
            there = await self._ask(
                who, "GET", f"/contents/{quote(moved or name)}?ref={quote(start)}", None, where
            )
        except AssertionError:
            there = None
        content = {} if text is None else {"content": base64.b64encode(text.encode()).decode()}
        change = {"path": name, **content, "operation": "delete" if text is None else "create"}
        if there is not None:
            change |= {"sha": there["sha"]} | ({"from_path": moved} if moved else {})
            change |= {} if text is None else {"operation": "update"}
        return change

    async def review(self, who: str, number: int, verdict: str, commit: str) -> None:
        document = {"event": _VERDICTS[verdict], "body": "read it", "commit_id": commit}
        await self._ask(who, "POST", f"/pulls/{number}/reviews", document)

    async def take_back(self, who: str, number: int) -> None:
        reviews = await self._ask(self.bot, "GET", f"/pulls/{number}/reviews")
        last = [review for review in reviews if review["user"]["login"] == who][-1]
        path = f"/pulls/{number}/reviews/{last['id']}/dismissals"
        await self._ask(self.bot, "POST", path, {"message": "not now"})

    async def say(self, who: str, number: int, text: str) -> int:
        made = await self._ask(who, "POST", f"/issues/{number}/comments", {"body": text})
        return int(made["id"])

    async def remove_comment(self, number: int, id_: int) -> None:
        await self._ask(self.bot, "DELETE", f"/issues/comments/{id_}")

    async def set_draft(self, number: int, is_draft: bool) -> None:
        pull = await self._ask(self.bot, "GET", f"/pulls/{number}")
        title = pull["title"].removeprefix("WIP: ")
        title = f"WIP: {title}" if is_draft else title
        await self._ask(self.bot, "PATCH", f"/pulls/{number}", {"title": title})

    async def fork_pull(self, branch: str, files: Mapping[str, str | None]) -> int:
        self.server.add_collaborator(self.repository, self.users["stranger"], "read")
        fork = await self._ask(self.stranger, "POST", "/forks", {})
        await self.commit(branch, files, repository=fork["full_name"], who=self.stranger)
        document = {"title": "From a fork", "head": f"{self.stranger}:{branch}", "base": "main"}
        return int((await self._ask(self.stranger, "POST", "/pulls", document))["number"])

    async def revoke(self) -> None:
        user = self.server.people.pop("bot")
        basic = base64.b64encode(f"{user.login}:{user.password}".encode()).decode()
        path = f"/users/{user.login}/tokens/tests"
        await asyncio.to_thread(self.server.call, "DELETE", path, authorization=f"Basic {basic}")


@contextlib.asynccontextmanager
async def open_gitea_rig() -> AsyncIterator[GiteaRig]:
    # In this thread: the server ends with the thread that started it.
    server = require_gitea()
    rig = await asyncio.to_thread(GiteaRig, server)
    await rig.commit("main", {"README.md": "A yard.\n", "web/main.tf": "# nothing yet\n"})
    yield rig
