"""What the parts of the adapter for GitLab share: one project, and the way to it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Self

from stackyard.clients.forge.answers import as_object, read_text
from stackyard.clients.forge.gitlab.documents import read_repository
from stackyard.clients.forge.model import CloneAccess, ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote
from stackyard.clients.forge.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.forge.transport import Patience

__all__ = ["PAGE", "SIZE_NAME", "GitlabRepository"]

PAGE = 100
SIZE_NAME = "per_page"
_LIMITS = ForgeLimits(comment_chars=1_000_000, context_chars=255, description_chars=255)


class GitlabRepository:
    """A project on GitLab, and how it is reached.

    Args:
        url: The address of the forge.
        repository: `group/name`, with all its groups.
        token: The token of a user, a project or a group.
        ca: A file with certificates that the forge may be signed by, besides those of the system.
        patience: How long to wait.

    Raises:
        ForgeRefusedError: The address is none.
    """

    def __init__(
        self,
        url: str,
        repository: str,
        token: str,
        *,
        ca: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        basic = base64.b64encode(f"oauth2:{token}".encode()).decode()
        headers = {"Authorization": f"Bearer {token}"}
        self._transport = Transport(f"{self._url}/api/v4", headers, (token, basic), ca=ca, patience=patience)
        self._name = repository
        self._path = f"/projects/{quote(repository)}"
        self._access = CloneAccess(
            url=f"{self._url}/{repository}.git", headers={"Authorization": f"Basic {basic}"}
        )

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITLAB

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    @property
    def clone_access(self) -> CloneAccess:
        """How git fetches the repository."""
        return self._access

    async def login(self) -> str:
        """Return whose token it is; the token of a project or a group has a user of its own."""
        return read_text(await self._object("/user", "a user"), "username")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the project."""
        return read_repository(await self._object(self._path, "a project"))

    async def _object(self, path: str, what: str) -> dict[str, Any]:
        return as_object((await self._transport.get(path)).document, what)

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        return as_object((await self._transport.send(method, path, body)).document, path)

    async def _collect(self, path: str, query: dict[str, str] | None = None) -> list[dict[str, Any]]:
        return await self._transport.collect(path, query, size=PAGE, size_name=SIZE_NAME)
