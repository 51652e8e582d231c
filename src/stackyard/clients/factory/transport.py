"""Requests to an image factory: redirects followed one by one, within limits of time and size."""

from __future__ import annotations

import contextlib
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from stackyard.base.addresses import is_loopback
from stackyard.base.http_failures import describe_failure
from stackyard.base.sockets import ClientSockets
from stackyard.base.visible import on_one_line
from stackyard.clients.factory.failures import (
    FactoryError,
    FactoryRedirectError,
    FactoryRefusedError,
    FactorySlowError,
    FactoryUnreachableError,
    SchematicUnknownError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

__all__ = ["FactoryLimits", "Transport", "read_body"]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 64 * 2**10
_LARGEST_ANSWER = 4 * 2**20
_LONGEST_TEXT = 300
_REMEDIES: Mapping[int, str] = {
    HTTPStatus.PAYMENT_REQUIRED: "This is part of the enterprise edition of the factory. Checksums need it; "
    "`stackyard cluster images --pin` records them without it.",
    HTTPStatus.UNAUTHORIZED: "The factory wants a login. Set `talos_factory` to one that does not.",
    HTTPStatus.FORBIDDEN: "The factory wants a login, or a proxy refuses the address.",
}
_LATER = "The fault is in the factory: run the command again later, or set `talos_factory` to a mirror."


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoryLimits:
    """What a request may take.

    Attributes:
        connect_s: Seconds for a connection.
        answer_s: Seconds for the beginning of an answer; a factory builds an image at its first request.
        register_s: The same for a schematic that is registered, which builds nothing.
        stall_s: Seconds without a byte in a download.
        total_s: Seconds for a whole download.
        redirects: The most redirects.
        largest_bytes: The largest image.
    """

    connect_s: float = 15.0
    answer_s: float = 300.0
    register_s: float = 30.0
    stall_s: float = 60.0
    total_s: float = 3600.0
    redirects: int = 5
    largest_bytes: int = 16 * 2**30


class Transport:
    """Sends requests to one factory; use it in an `async with` block.

    Args:
        base: The address of the factory.
        limits: What a request may take.
    """

    def __init__(self, base: str, limits: FactoryLimits) -> None:
        self._base = URL(base)
        self._limits = limits
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Transport:
        host = self._base.host or ""
        # Certificates are read for an encrypted connection alone: it takes as long as a whole registration.
        context = ssl.create_default_context() if self._base.scheme == "https" else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, socket_factory=self._sockets.make),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s),
            # The proxy of the environment is for other machines.
            trust_env=not is_loopback(host),
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, url: str, *, body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Give the answer to a request, behind its redirects.

        Raises:
            FactoryUnreachableError: There is no connection, or it broke.
            FactorySlowError: No answer began in time.
            FactoryRedirectError: The redirects have no end, or lead to an address without encryption.
            SchematicUnknownError: There is nothing at the address.
            FactoryRefusedError: The answer is another error.
        """
        session = self._session
        if session is None:
            raise FactoryError("The client is not open. This is a bug in stackyard.")
        patience_s = self._limits.register_s if method == "POST" else self._limits.answer_s
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_s, sock_read=patience_s)
        target = URL(url)
        for _ in range(self._limits.redirects + 1):
            async with contextlib.AsyncExitStack() as stack:
                with _explain(method, target, patience_s):
                    response = await stack.enter_async_context(
                        session.request(method, target, data=body, allow_redirects=False, timeout=timeout)
                    )
                if response.status not in _REDIRECTS:
                    with _explain(method, target, patience_s):
                        await _require_ok(response, method)
                    yield response
                    return
                target = _find_next(target, response)
        raise FactoryRedirectError(
            f"{method} {url} was redirected more than {self._limits.redirects} times, at last to {target}."
        )


@contextlib.contextmanager
def _explain(method: str, target: URL, patience_s: float) -> Iterator[None]:
    """Say in the words of a factory why a request failed."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as err:
        raise FactoryUnreachableError(f"{target.origin()}: {describe_failure(err)}.") from err
    except TimeoutError as err:
        raise FactorySlowError(f"{method} {target} had no answer after {patience_s:g} seconds.") from err
    except (aiohttp.ClientError, OSError) as err:
        raise FactoryUnreachableError(
            f"{target.origin()} broke the connection before its answer to {method} {target.path}: "
            f"{describe_failure(err)}."
        ) from err
    except ValueError as err:
        raise FactoryUnreachableError(
            f"{target.origin()} cannot be asked: a proxy of the environment is not an address."
        ) from err


def _find_next(target: URL, response: aiohttp.ClientResponse) -> URL:
    location = response.headers.get("Location", "")
    try:
        found = target.join(URL(location))
    except ValueError:
        found = None
    if not location or found is None or found.scheme not in ("http", "https") or not found.host:
        raise FactoryRedirectError(f"{target} redirects to no address.")
    if target.scheme == "https" and found.scheme != "https":
        raise FactoryRedirectError(f"{target} redirects to {found}, which is not encrypted.")
    return found


async def _require_ok(response: aiohttp.ClientResponse, method: str) -> None:
    status = response.status
    if status < HTTPStatus.BAD_REQUEST:
        return
    body = b"" if method == "HEAD" else await read_body(response)
    said = on_one_line(body.decode(errors="replace").strip())[:_LONGEST_TEXT]
    detail = f"{method} {response.url} answered {status} {response.reason or ''}".rstrip()
    detail += f": {said.rstrip('.')}." if said and not said.startswith("<") else "."
    if status == HTTPStatus.NOT_FOUND:
        raise SchematicUnknownError(detail)
    remedy = _LATER if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _REMEDIES.get(status)
    raise FactoryRefusedError(detail, status, remedy=remedy)


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return a short answer.

    Raises:
        FactoryError: It is too large for one.
    """
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > _LARGEST_ANSWER:
            raise FactoryError(f"The answer of {response.url} is larger than {_LARGEST_ANSWER} bytes.")
    return bytes(body)
