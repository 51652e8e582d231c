"""Requests to a forge: JSON over verified TLS, within limits of time and size; only it gets the token."""

from __future__ import annotations

import asyncio
import io
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from yarl import URL

from stackyard.base.addresses import is_loopback
from stackyard.base.backoff import Backoff
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.errors import FileError
from stackyard.base.http_failures import describe_failure
from stackyard.base.redaction import Redactor
from stackyard.clients.forge.answers import Answer, as_list, as_object
from stackyard.clients.forge.failures import (
    ForgeAnswerError,
    ForgeError,
    ForgeRateLimitedError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from stackyard.clients.forge.refusals import ForgeRequest, make_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

__all__ = ["Patience", "Transport"]

_CONNECT_S = 10.0
_CONNECTIONS = 8
_LARGEST_ANSWER = 32 * 2**20
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 3
# No list of a repository that we ask for is longer; an answer without end ends here.
_MOST_PAGES = 1000
# It did nothing, or a gateway before it says that it is away.
_AWAY = frozenset({500, 502, 503, 504})
# What comes to the same when it comes twice.
_REPEATABLE = frozenset({"GET", "PUT", "PATCH", "DELETE"})
_AGAIN = Backoff(first_s=0.2, longest_s=5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait.

    Attributes:
        answer_s: For the answer to one request.
        away_s: For a forge that is away or wants fewer requests, request after request.
    """

    answer_s: float = 30.0
    away_s: float = 60.0


class Transport:
    """Sends requests to the interface of one forge; use it in an `async with` block.

    Args:
        api: The address of the interface, without a slash at its end.
        headers: What is sent with each request; holds the token.
        secrets: What must not appear in an error.
        ca: A file with certificates that the forge may be signed by, besides those of the system.
        patience: How long to wait.

    Raises:
        ForgeRefusedError: The address is none, or would carry the token without encryption.
    """

    def __init__(
        self,
        api: str,
        headers: Mapping[str, str],
        secrets: Iterable[str],
        *,
        ca: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._api = _check_address(api)
        self._headers = {"Accept": "application/json", "User-Agent": "stackyard", **headers}
        self._redact = Redactor(secrets)
        self._ca = ca
        self._patience = patience or Patience()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Transport:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=_make_context(self._ca), limit=_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            # The proxy of the environment is for other machines.
            trust_env=not is_loopback(URL(self._api).host or ""),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Ask for something; ask again while the forge is away.

        Args:
            path: From the address of the interface on; names in it are quoted.
            query: The parameters.

        Raises:
            ForgeError: There is no answer, or it is an error.
        """
        return await self.send("GET", path, query=query)

    async def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
    ) -> Answer:
        """Send a request; send it again where that cannot do anything twice.

        Args:
            method: What to do.
            path: From the address of the interface on; names in it are quoted.
            body: The object to send.
            query: The parameters.
            is_repeatable: Whether it comes to the same when it comes twice; by its method when absent.

        Raises:
            ForgeError: There is no answer, or it is an error.
        """
        request = ForgeRequest(method=method, path=path)
        repeatable = method in _REPEATABLE if is_repeatable is None else is_repeatable
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience.away_s
        for pause_s in _AGAIN:
            try:
                return await self._send_once(request, query, body)
            except ForgeRateLimitedError as err:
                pause_s = max(pause_s, err.retry_after_s)
                if loop.time() + pause_s > until:
                    raise
            except ForgeUnreachableError as err:
                # What could not even be connected was not done.
                may_repeat = repeatable or isinstance(err.__cause__, aiohttp.ClientConnectorError)
                if not may_repeat or loop.time() + pause_s > until:
                    raise
            await asyncio.sleep(pause_s)
        raise AssertionError("the pauses have no end")

    async def pages(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        size: int = 50,
        size_name: str = "limit",
        key: str = "",
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield a list page by page.

        The address that a forge gives for its next page is not followed, since it may be of another host:
        pages are counted, which Gitea, GitHub and GitLab all allow.

        Args:
            path: From the address of the interface on.
            query: The parameters, besides those of the pages.
            size: How many items of a page to ask for; forges give fewer where that is too many.
            size_name: What the forge calls the size.
            key: Where the list is in an object; empty where the answer is the list.

        Raises:
            ForgeError: There is no answer, or it is an error.
        """
        seen = 0
        for number in range(1, _MOST_PAGES + 1):
            asked = {**(query or {}), "page": str(number), size_name: str(size)}
            answer = await self.get(path, asked)
            document = as_object(answer.document, path).get(key) if key else answer.document
            items = as_list(document, path)
            seen += len(items)
            yield items
            if not items or not _has_next(answer, len(items), seen, size):
                return
        raise ForgeAnswerError(f"GET {path} has more than {_MOST_PAGES} pages.")

    async def collect(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        size: int = 50,
        size_name: str = "limit",
        key: str = "",
    ) -> list[dict[str, Any]]:
        """Return all items of a list, as `pages` does.

        Raises:
            ForgeError: There is no answer, or it is an error.
        """
        pages = self.pages(path, query, size=size, size_name=size_name, key=key)
        return [item async for page in pages for item in page]

    async def _send_once(
        self, request: ForgeRequest, query: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> Answer:
        url = URL(f"{self._api}{request.path}", encoded=True).update_query(query or {})
        for _ in range(_MOST_REDIRECTS + 1):
            status, headers, data = await self._exchange(request, url, body)
            if status not in _REDIRECTS:
                break
            url = self._find_next(request, url, headers.get("location", ""))
        else:
            raise ForgeAnswerError(f"{request} is redirected more than {_MOST_REDIRECTS} times.")
        document = self._parse(request, status, data)
        if status in _AWAY:
            raise ForgeUnreachableError(f"{request} of {self._host}: the answer is {status}.", status=status)
        if status >= 400:
            raise make_refusal(
                request, Answer(status=status, document=document, headers=headers), self._redact
            )
        return Answer(status=status, document=document, headers=headers)

    async def _exchange(
        self, request: ForgeRequest, url: URL, body: Mapping[str, Any] | None
    ) -> tuple[int, Mapping[str, str], bytes]:
        if self._session is None:
            raise ForgeError("The forge is not open. This is a bug in stackyard.")
        timeout = aiohttp.ClientTimeout(total=self._patience.answer_s, sock_connect=_CONNECT_S)
        options: dict[str, Any] = {"timeout": timeout, "allow_redirects": False}
        if body is not None:
            # A stream: a large text is not sent in one piece, which would hold up everything else.
            options |= {
                "data": io.BytesIO(orjson.dumps(body)),
                "headers": {"Content-Type": "application/json"},
            }
        try:
            async with self._session.request(request.method, url, **options) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                return response.status, headers, await _read_body(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            said = self._redact(describe_failure(err))
            raise ForgeUnreachableError(f"{request} of {self._host}: {said}.") from err

    def _find_next(self, request: ForgeRequest, url: URL, location: str) -> URL:
        """Return where a redirect leads, which must be the forge itself, and only to read there."""
        try:
            found = url.join(URL(location, encoded=True))
        except ValueError:
            found = None
        if not location or found is None or request.method != "GET" or found.origin() != url.origin():
            raise ForgeRefusedError(
                f"{request} of {self._host} is redirected. The token is not sent to another address.",
                remedy="Check the address of the forge. Where the repository was renamed, use its new name.",
            )
        return found

    def _parse(self, request: ForgeRequest, status: int, data: bytes) -> Any:
        if not data.strip():
            return None
        try:
            return parse_json(data)
        except JsonError:
            if status < 400:
                raise ForgeAnswerError(
                    f"{request} of {self._host}: the answer is not JSON.", status=status
                ) from None
            return None

    @property
    def _host(self) -> str:
        return URL(self._api).authority


def _check_address(api: str) -> str:
    try:
        url = URL(api)
        host = url.host
    except ValueError:
        host = None
    if not host or url.scheme not in ("http", "https") or url.user or url.password:
        raise ForgeRefusedError(
            "The address of the forge is none: it begins with https:// and has no user in it.",
            remedy="Write it as https://forge.example.org.",
        )
    if url.scheme == "http" and not is_loopback(host):
        raise ForgeRefusedError(
            f"{url.origin()} is not encrypted: everybody on the way could read the token.",
            remedy="Use the address that begins with https://, with `ca` where its certificate is your own.",
        )
    return api.rstrip("/")


def _make_context(ca: Path | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(cafile=ca)
        except (OSError, ValueError) as err:
            raise FileError.from_os_error(err, "read the certificates of", ca) from err
    return context


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > _LARGEST_ANSWER:
            raise aiohttp.ClientPayloadError(f"the answer is larger than {_LARGEST_ANSWER} bytes")
    return bytes(body)


def _has_next(answer: Answer, count: int, seen: int, size: int) -> bool:
    """Return whether there are more pages: by the links, the total, or how full this one is."""
    if "link" in answer.headers:
        return 'rel="next"' in answer.headers["link"]
    total = answer.headers.get("x-total-count", "")
    return seen < int(total) if total.isdecimal() else count >= size
