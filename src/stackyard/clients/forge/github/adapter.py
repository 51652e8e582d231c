"""A repository on GitHub: the whole of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.github.hooks import set_webhook
from stackyard.clients.forge.github.messages import GithubMessages
from stackyard.clients.forge.github.protecting import protect_branch, read_protection
from stackyard.clients.forge.github.pulls import GithubPulls
from stackyard.clients.forge.texts import quote

if TYPE_CHECKING:
    from stackyard.clients.forge.model import Protection

__all__ = ["GithubForge"]


class GithubForge(GithubPulls, GithubMessages):
    """A repository on GitHub; use it in an `async with` block."""

    async def protection(self, branch: str) -> Protection | None:
        """Return what a branch requires; None where it is not protected."""
        rules = await self._collect(f"{self._path}/rules/branches/{quote(branch)}")
        return await read_protection(self._transport, self._path, branch, rules)

    async def protect(self, protection: Protection) -> None:
        """Have a branch require this, and leave everything else of its protection as it is."""
        await protect_branch(self._transport, self._path, protection)

    async def ensure_webhook(self, url: str, secret: str) -> bool:
        """Have the forge tell an address of what happens, and return whether it had to be changed."""
        hooks = await self._collect(f"{self._path}/hooks")
        return await set_webhook(self._transport, self._path, hooks, url, secret)
