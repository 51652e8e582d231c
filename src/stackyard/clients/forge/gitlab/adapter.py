"""A project on GitLab: the whole of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.gitlab.hooks import set_webhook
from stackyard.clients.forge.gitlab.messages import GitlabMessages
from stackyard.clients.forge.gitlab.protecting import ProjectProtection
from stackyard.clients.forge.gitlab.pulls import GitlabPulls

if TYPE_CHECKING:
    from stackyard.clients.forge.model import Protection

__all__ = ["GitlabForge"]


class GitlabForge(GitlabPulls, GitlabMessages):
    """A project on GitLab; use it in an `async with` block."""

    async def protection(self, branch: str) -> Protection | None:
        """Return what a branch requires; None where it is not protected."""
        return await ProjectProtection(self._transport, self._path).read(branch)

    async def protect(self, protection: Protection) -> None:
        """Have a branch require this, and leave everything else of its protection as it is."""
        await ProjectProtection(self._transport, self._path).write(protection)

    async def ensure_webhook(self, url: str, secret: str) -> bool:
        """Have the forge tell an address of what happens, and return whether it had to be changed."""
        hooks = await self._collect(f"{self._path}/hooks")
        return await set_webhook(self._transport, self._path, hooks, url, secret)
