"""What the parts of the adapter for Gitea share: one repository, and the way to it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Self

from stackyard.clients.forge.answers import as_object, read_text
from stackyard.clients.forge.gitea.documents import read_repository
from stackyard.clients.forge.model import CloneAccess, ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote
from stackyard.clients.forge.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.forge.transport import Patience

__all__ = ["GiteaRepository"]

# Gitea has no limit to a comment; its database and its pages do.
_LIMITS = ForgeLimits(comment_chars=200_000, context_chars=255, description_chars=255)


class GiteaRepository:
    """A repository on Gitea or Forgejo, and how it is reached.

    Args:
        url: The address of the forge.
        repository: `owner/name`.
        token: The token of a user.
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
        url = url.rstrip("/")
        basic = base64.b64encode(f"stackyard:{token}".encode()).decode()
        headers = {"Authorization": f"token {token}"}
        self._transport = Transport(f"{url}/api/v1", headers, (token, basic), ca=ca, patience=patience)
        self._owner = repository.partition("/")[0]
        self._path = "/repos/" + "/".join(map(quote, repository.split("/")))
        self._access = CloneAccess(url=f"{url}/{repository}.git", headers={"Authorization": f"Basic {basic}"})

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITEA

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    @property
    def clone_access(self) -> CloneAccess:
        """How git fetches the repository."""
        return self._access

    async def login(self) -> str:
        """Return whose token it is."""
        return read_text(await self._object("/user", "a user"), "login")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the repository."""
        return read_repository(await self._object(self._path, "a repository"))

    async def _object(self, path: str, what: str) -> dict[str, Any]:
        return as_object((await self._transport.get(path)).document, what)
