"""What the parts of the adapter for Gitea share: one repository, and the way to it."""

from __future__ import annotations

from stackyard.clients.forge.adapter import ForgeAdapter
from stackyard.clients.forge.answers import read_text
from stackyard.clients.forge.common_documents import read_repository
from stackyard.clients.forge.model import ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote

__all__ = ["GiteaRepository"]

# Gitea has no limit to a comment; its database and its pages do.
_LIMITS = ForgeLimits(comment_chars=200_000, context_chars=255, description_chars=255)


class GiteaRepository(ForgeAdapter):
    """A repository on Gitea or Forgejo, and how it is reached."""

    @property
    def _path(self) -> str:
        """The path of the repository in the interface."""
        return "/repos/" + "/".join(map(quote, self._name.split("/")))

    def _find_api(self) -> str:
        return f"{self._url}/api/v1"

    def _make_headers(self, token: str) -> dict[str, str]:
        return {"Authorization": f"token {token}"}

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITEA

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    async def login(self) -> str:
        """Return whose token it is."""
        return read_text(await self._object("/user", "a user"), "login")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the repository."""
        return read_repository(await self._object(self._path, "a repository"))
