"""Forges for the contract of `clients.forge`: what people and git do there, done in the same words on each.

`open_rig(name)` gives one repository with a commit on `main`, the bot whose token the adapter has, an author,
a reviewer who may write, a reader, a stranger, and an address that collects webhooks.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web

from stackyard.clients.forge.failures import WebhookRefusedError
from stackyard.clients.forge.model import EventKind, ForgeKind, WebhookEvent
from stackyard.clients.forge.open_forge import open_forge
from stackyard.clients.forge.protocol import Forge
from stackyard.clients.forge.transport import Patience
from stackyard.clients.forge.webhooks import read_webhook

__all__ = ["HOOK_SECRET", "ForgeRig", "Inbox", "open_inbox"]

HOOK_SECRET = "only the forge and we know"
PATIENCE = Patience(answer_s=20.0, away_s=5.0)
WAIT_S = 60.0


@dataclass
class Inbox:
    """An address that collects what webhooks send.

    Attributes:
        url: The address.
        deliveries: The headers and the body of each.
    """

    url: str
    deliveries: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def wait_for(self, kind: ForgeKind, event: EventKind, branch: str = "") -> WebhookEvent:
        """Return the first event of a kind that arrived or arrives; each delivery is proven."""
        async with asyncio.timeout(WAIT_S), self.arrived:
            while True:
                for headers, body in self.deliveries:
                    try:
                        found = read_webhook(kind, headers, body, HOOK_SECRET)
                    except WebhookRefusedError:
                        # It was made with the secret before.
                        continue
                    if found.kind is event and branch in ("", found.branch):
                        return found
                await self.arrived.wait()


@contextlib.asynccontextmanager
async def open_inbox() -> AsyncIterator[Inbox]:
    """Listen on loopback for the length of the block."""
    inbox = Inbox(url="")

    async def receive(request: web.Request) -> web.Response:
        body = await request.read()
        async with inbox.arrived:
            inbox.deliveries.append((request.headers.copy(), body))
            inbox.arrived.notify_all()
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        inbox.url = f"http://127.0.0.1:{port}/hook"
        yield inbox
    finally:
        await runner.cleanup()


class ForgeRig(abc.ABC):
    """One repository on a forge, and the people there."""

    kind: ClassVar[ForgeKind]
    # The names that the forge knows people by.
    author = "author"
    reviewer = "reviewer"
    reader = "reader"
    stranger = "stranger"
    bot = "bot"
    # A team with the reviewer in it, and nobody else.
    team = ""
    # A branch with everything that a branch can require on this forge.
    can_require: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, url: str, repository: str, token: str) -> None:
        self.url, self.repository, self.token = url, repository, token

    def open(self, *, token: str = "", repository: str = "", patience: Patience = PATIENCE) -> Forge:
        """Return the repository as the bot has it."""
        return open_forge(
            self.kind, self.url, repository or self.repository, token or self.token, patience=patience
        )

    @abc.abstractmethod
    async def commit(self, branch: str, files: Mapping[str, str | None], *, moved: str = "") -> str:
        """Commit to a branch, which is made from `main` where it is new; a file that is None is removed.

        Args:
            branch: The branch.
            files: What the files are then.
            moved: The file that the only one of these was before.
        """

    @abc.abstractmethod
    async def review(self, who: str, number: int, verdict: str, commit: str) -> None:
        """Review a pull request: `approve`, `reject` or `comment`."""

    @abc.abstractmethod
    async def take_back(self, who: str, number: int) -> None:
        """Make the last review of somebody count no more."""

    @abc.abstractmethod
    async def say(self, who: str, number: int, text: str) -> int:
        """Write a comment as somebody, and return its id."""

    @abc.abstractmethod
    async def remove_comment(self, number: int, id_: int) -> None:
        """Remove a comment by hand."""

    @abc.abstractmethod
    async def set_draft(self, number: int, is_draft: bool) -> None:
        """Say that a pull request is not ready, or that it is."""

    @abc.abstractmethod
    async def fork_pull(self, branch: str, files: Mapping[str, str | None]) -> int:
        """Open a pull request from a fork of the stranger, and return its number."""

    @abc.abstractmethod
    async def revoke(self) -> None:
        """Take the token of the bot back."""
