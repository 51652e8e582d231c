"""What the parts of the adapter for GitHub share: one repository, and the way to it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Self

from yarl import URL

from stackyard.clients.forge.answers import as_object, read_text
from stackyard.clients.forge.failures import ForgeUnauthorizedError
from stackyard.clients.forge.github.documents import read_repository
from stackyard.clients.forge.model import CloneAccess, ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote
from stackyard.clients.forge.transport import Transport

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.clients.forge.transport import Patience

__all__ = ["PAGE", "SIZE_NAME", "GithubRepository"]

PAGE = 100
SIZE_NAME = "per_page"
_LIMITS = ForgeLimits(comment_chars=65_536, context_chars=255, description_chars=140)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_VIEWER = {"query": "query { viewer { login } }"}


class GithubRepository:
    """A repository on GitHub, and how it is reached.

    Args:
        url: The address of the forge.
        repository: `owner/name`.
        token: The token of a user, an app or a workflow.
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
        basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        headers = {**_HEADERS, "Authorization": f"Bearer {token}"}
        api, self._rest, self._graphql = _find_interfaces(url)
        self._transport = Transport(api, headers, (token, basic), ca=ca, patience=patience)
        self._owner = repository.partition("/")[0]
        self._path = f"{self._rest}/repos/" + "/".join(map(quote, repository.split("/")))
        self._access = CloneAccess(url=f"{url}/{repository}.git", headers={"Authorization": f"Basic {basic}"})

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITHUB

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    @property
    def clone_access(self) -> CloneAccess:
        """How git fetches the repository."""
        return self._access

    async def login(self) -> str:
        """Return whose token it is; the token of an app or a workflow has no user, but a viewer."""
        try:
            return read_text(await self._object(f"{self._rest}/user", "a user"), "login")
        except ForgeUnauthorizedError as err:
            if err.status != 403:
                raise
        answer = await self._transport.send("POST", self._graphql, _VIEWER, is_repeatable=True)
        return read_text(as_object(answer.document, "a viewer"), "data", "viewer", "login")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the repository."""
        return read_repository(await self._object(self._path, "a repository"))

    async def _object(self, path: str, what: str) -> dict[str, Any]:
        return as_object((await self._transport.get(path)).document, what)

    async def _collect(
        self, path: str, query: dict[str, str] | None = None, *, key: str = ""
    ) -> list[dict[str, Any]]:
        return await self._transport.collect(path, query, size=PAGE, size_name=SIZE_NAME, key=key)


def _find_interfaces(url: str) -> tuple[str, str, str]:
    """Return the address of the interfaces, and the paths from there to those of REST and of GraphQL."""
    if URL(url).host in ("github.com", "www.github.com", "api.github.com"):
        return "https://api.github.com", "", "/graphql"
    return f"{url}/api", "/v3", "/graphql"
