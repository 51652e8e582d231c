"""What the parts of the adapter for GitLab share: one project, and the way to it."""

from __future__ import annotations

from typing import Any

from stackyard.clients.forge.adapter import ForgeAdapter
from stackyard.clients.forge.answers import as_object, read_text
from stackyard.clients.forge.gitlab.documents import read_repository
from stackyard.clients.forge.model import ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote

__all__ = ["PAGE", "SIZE_NAME", "GitlabRepository"]

PAGE = 100
SIZE_NAME = "per_page"
_LIMITS = ForgeLimits(comment_chars=1_000_000, context_chars=255, description_chars=255)


class GitlabRepository(ForgeAdapter):
    """A project on GitLab, and how it is reached."""

    _git_user = "oauth2"

    @property
    def _path(self) -> str:
        """The path of the project in the interface."""
        return f"/projects/{quote(self._name)}"

    def _find_api(self) -> str:
        return f"{self._url}/api/v4"

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITLAB

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    async def login(self) -> str:
        """Return whose token it is; the token of a project or a group has a user of its own."""
        return read_text(await self._object("/user", "a user"), "username")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the project."""
        return read_repository(await self._object(self._path, "a project"))

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return as_object((await self._transport.send(method, path, body)).document, path)

    async def _collect(self, path: str, query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        return await self._transport.collect(path, query, size=PAGE, size_name=SIZE_NAME)
