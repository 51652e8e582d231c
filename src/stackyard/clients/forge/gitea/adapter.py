"""A repository on Gitea or Forgejo: the whole of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.gitea.hooks import replace_webhook
from stackyard.clients.forge.gitea.messages import GiteaMessages
from stackyard.clients.forge.gitea.protecting import protect_branch, read_protection
from stackyard.clients.forge.gitea.pulls import GiteaPulls

if TYPE_CHECKING:
    from stackyard.clients.forge.model import Protection

__all__ = ["GiteaForge"]


class GiteaForge(GiteaPulls, GiteaMessages):
    """A repository on Gitea or Forgejo; use it in an `async with` block."""

    async def protection(self, branch: str) -> Protection | None:
        """Return what a branch requires; None where it is not protected."""
        return await read_protection(self._transport, self._path, branch)

    async def protect(self, protection: Protection) -> None:
        """Have a branch require this, and leave everything else of its protection as it is."""
        await protect_branch(self._transport, self._path, protection)

    async def ensure_webhook(self, url: str, secret: str) -> bool:
        """Have the forge tell an address of what happens, and return whether it had to be changed."""
        return await replace_webhook(self._transport, self._path, url, secret)
