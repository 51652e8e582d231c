"""What every adapter is: one repository, the way to it, and how git fetches it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Self

from stackyard.clients.forge.answers import as_object
from stackyard.clients.forge.model import CloneAccess
from stackyard.clients.forge.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.forge.transport import Patience

__all__ = ["ForgeAdapter"]


class ForgeAdapter:
    """A repository on a forge; used in an `async with` block.

    Args:
        url: The address of the forge.
        repository: `owner/name`; on GitLab with all its groups.
        token: The token.
        ca: A file with certificates that the forge may be signed by, besides those of the system.
        patience: How long to wait.

    Raises:
        ForgeRefusedError: The address is none.
    """

    # What git logs in as: forges look at the token only, and some want a certain name beside it.
    _git_user = "stackyard"

    def __init__(
        self,
        url: str,
        repository: str,
        token: str,
        *,
        ca: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url, self._name = url.rstrip("/"), repository
        basic = base64.b64encode(f"{self._git_user}:{token}".encode()).decode()
        headers = self._make_headers(token)
        self._transport = Transport(self._find_api(), headers, (token, basic), ca=ca, patience=patience)
        self._access = CloneAccess(
            url=f"{self._url}/{repository}.git", headers={"Authorization": f"Basic {basic}"}
        )

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._transport.__aexit__(*exc)

    @property
    def clone_access(self) -> CloneAccess:
        """How git fetches the repository."""
        return self._access

    def _find_api(self) -> str:
        """Return the address of the interface."""
        raise NotImplementedError

    def _make_headers(self, token: str) -> Mapping[str, str]:
        """Return what is sent with each request."""
        return {"Authorization": f"Bearer {token}"}

    async def _object(self, path: str, what: str) -> dict[str, Any]:
        return as_object((await self._transport.get(path)).document, what)
