"""What the parts of the adapter for GitHub share: one repository, and the way to it."""

from __future__ import annotations

from typing import Any

from stackyard.clients.forge.adapter import ForgeAdapter
from stackyard.clients.forge.answers import as_object, read_text
from stackyard.clients.forge.common_documents import read_repository
from stackyard.clients.forge.failures import ForgeUnauthorizedError
from stackyard.clients.forge.model import ForgeKind, ForgeLimits, ForgeRepository
from stackyard.clients.forge.texts import quote

__all__ = ["PAGE", "SIZE_NAME", "GithubRepository"]

PAGE = 100
SIZE_NAME = "per_page"
_LIMITS = ForgeLimits(comment_chars=65_536, context_chars=255, description_chars=140)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_PUBLIC = frozenset({"github.com", "www.github.com"})
_VIEWER = {"query": "query { viewer { login } }"}


class GithubRepository(ForgeAdapter):
    """A repository on GitHub, and how it is reached."""

    _git_user = "x-access-token"

    @property
    def _owner(self) -> str:
        return self._name.partition("/")[0]

    @property
    def _rest(self) -> str:
        """The path from the address of the interfaces to that of REST."""
        return "" if self._is_public else "/v3"

    @property
    def _path(self) -> str:
        """The path of the repository in the interfaces."""
        return f"{self._rest}/repos/" + "/".join(map(quote, self._name.split("/")))

    @property
    def _is_public(self) -> bool:
        return self._url.casefold().removeprefix("https://").partition("/")[0] in _PUBLIC

    def _find_api(self) -> str:
        return "https://api.github.com" if self._is_public else f"{self._url}/api"

    def _make_headers(self, token: str) -> dict[str, str]:
        return {**_HEADERS, "Authorization": f"Bearer {token}"}

    @property
    def kind(self) -> ForgeKind:
        """Which forge it is."""
        return ForgeKind.GITHUB

    @property
    def limits(self) -> ForgeLimits:
        """How long texts may be."""
        return _LIMITS

    async def login(self) -> str:
        """Return whose token it is; the token of an app or a workflow has no user, but a viewer."""
        try:
            return read_text(await self._object(f"{self._rest}/user", "a user"), "login")
        except ForgeUnauthorizedError as err:
            if err.status != 403:
                raise
        answer = await self._transport.send("POST", "/graphql", _VIEWER, is_repeatable=True)
        return read_text(as_object(answer.document, "a viewer"), "data", "viewer", "login")

    async def repository(self) -> ForgeRepository:
        """Return what is known of the repository."""
        return read_repository(await self._object(self._path, "a repository"))

    async def _collect(
        self, path: str, query: dict[str, str] | None = None, *, key: str = ""
    ) -> list[dict[str, Any]]:
        return await self._transport.collect(path, query, size=PAGE, size_name=SIZE_NAME, key=key)
