"""Asking servers for versions: HTTPS only, each address once, within limits of time and size.

What a server answers is data. A reason for a failure names the host and what happened, and nothing that was
sent to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
from yarl import URL

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import DocumentLimits
from stackyard.base.http_failures import describe_failure
from stackyard.base.visible import on_one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

__all__ = ["Fetched", "Fetcher", "Patience", "SourceError", "open_fetcher"]

_AT_ONCE = 16
_MOST_REDIRECTS = 5
_LARGEST_BYTES = 16 * 2**20
_LIMITS = DocumentLimits(size=_LARGEST_BYTES, values=500_000)
_CHUNK_BYTES = 64 * 2**10
_LONGEST_REASON = 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class SourceError(Exception):
    """A source of versions cannot say which there are; its text is the reason, without a full stop."""

    def __init__(self, reason: str) -> None:
        super().__init__(on_one_line(reason)[:_LONGEST_REASON])


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a server.

    Attributes:
        connect_s: For a connection.
        whole_s: For a whole answer.
    """

    connect_s: float = 10.0
    whole_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """An answer.

    Attributes:
        status: Its status.
        url: Where it came from, behind redirects.
        headers: Its headers.
        body: What it holds.
    """

    status: int
    url: URL
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the JSON that it holds.

        Raises:
            SourceError: It holds none.
        """
        try:
            return parse_json(self.body, _LIMITS)
        except JsonError as err:
            raise SourceError(f"{self.url.host} did not answer with JSON") from err


@dataclass(slots=True)
class Fetcher:
    """Asks servers; use it through `open_fetcher`."""

    session: aiohttp.ClientSession
    _asked: dict[tuple[str, str, str], asyncio.Task[Fetched]] = field(default_factory=dict)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def get(self, url: str | URL, *, authorization: str | None = None, accept: str = "") -> Fetched:
        """Return what a server answers, whatever its status.

        Raises:
            SourceError: It does not answer, or not within the limits.
        """
        key = (str(url), authorization or "", accept)
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self._get(url, authorization, accept))
        return await asyncio.shield(self._asked[key])

    async def get_json(self, url: str | URL, *, authorization: str | None = None) -> Any:
        """Return the JSON at an address, None where there is nothing.

        Raises:
            SourceError: The server refuses, or answers something else.
        """
        fetched = await self.get(url, authorization=authorization, accept="application/json")
        if fetched.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        require_ok(fetched)
        return fetched.json()

    async def close(self) -> None:
        """End what is still asked for."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    async def _get(self, url: str | URL, authorization: str | None, accept: str) -> Fetched:
        try:
            target = URL(url) if isinstance(url, str) else url
            async with self._turns:
                return await self._follow(target, authorization, accept)
        except (aiohttp.ClientError, OSError, TimeoutError) as err:
            raise SourceError(describe_failure(err)) from err
        except ValueError as err:
            raise SourceError("an address, or a proxy in the environment, is not valid") from err

    async def _follow(self, url: URL, authorization: str | None, accept: str) -> Fetched:
        first = url
        for _ in range(_MOST_REDIRECTS + 1):
            if url.scheme != "https" or not url.host:
                raise SourceError(f"{first.host or 'an address'} leads to an address without HTTPS")
            # A login is for the server that it was given for.
            sent = authorization if url.origin() == first.origin() else None
            fetched = await self._once(url, sent, accept)
            if fetched.status not in _REDIRECTS or "Location" not in fetched.headers:
                return fetched
            url = url.join(URL(fetched.headers["Location"]))
        raise SourceError(f"{first.host} redirects more than {_MOST_REDIRECTS} times")

    async def _once(self, url: URL, authorization: str | None, accept: str) -> Fetched:
        headers = {"Accept": accept} if accept else {}
        if authorization is not None:
            headers["Authorization"] = authorization
        async with self.session.get(url, headers=headers, allow_redirects=False) as response:
            body = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                body += chunk
                if len(body) > _LARGEST_BYTES:
                    raise SourceError(f"the answer of {url.host} is larger than {_LARGEST_BYTES} bytes")
            return Fetched(status=response.status, url=url, headers=response.headers.copy(), body=bytes(body))


def require_ok(fetched: Fetched) -> None:
    """Refuse an answer that is none.

    Raises:
        SourceError: Its status is not 200.
    """
    if fetched.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise SourceError(f"{fetched.url.host} refuses the request ({fetched.status}): a login is needed")
    if fetched.status != HTTPStatus.OK:
        raise SourceError(f"{fetched.url.host} answered {fetched.status}")


@contextlib.asynccontextmanager
async def open_fetcher(patience: Patience = Patience()) -> AsyncIterator[Fetcher]:  # noqa: B008 - frozen
    """Open what asks servers for the length of the block."""
    timeout = aiohttp.ClientTimeout(total=patience.whole_s, sock_connect=patience.connect_s)
    # The environment names the user's proxy and certificates (SSL_CERT_FILE), as it does for the engine.
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context())
    async with aiohttp.ClientSession(timeout=timeout, connector=connector, trust_env=True) as session:
        fetcher = Fetcher(session)
        try:
            yield fetcher
        finally:
            await fetcher.close()
