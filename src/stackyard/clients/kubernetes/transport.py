"""One request over the wire: send it, read the answer, or follow a stream of lines."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
import yarl

from stackyard.base.addresses import is_loopback
from stackyard.base.backoff import Backoff
from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.http_failures import describe_failure
from stackyard.base.redaction import Redactor
from stackyard.base.sockets import ClientSockets
from stackyard.clients.kubernetes.failures import (
    Cause,
    KubernetesUnreachableError,
    Request,
    Status,
    make_refused_error,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from stackyard.clients.kubernetes.kubeconfig import ClusterAccess

__all__ = ["Answer", "Patience", "Transport"]

_CONNECT_S = 10.0
_CONNECTIONS = 32
# One object is at most three MiB; a page of five hundred is far below this.
_LARGEST_ANSWER_MIB = 256
_LARGEST_LINE_BYTES = 16 * 2**20
# An API server tells no one when it is back.
_AGAIN = Backoff(first_s=0.1, longest_s=3.0)
# The API server is starting, is stopping, or has too much to do: it did nothing, and asks to be asked again.
_BUSY = frozenset((429, 502, 503, 504))
_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait.

    Attributes:
        answer_s: For the answer to one request.
        away_s: For an API server that cannot be reached or has too much to do, request after request.
    """

    answer_s: float = 30.0
    away_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API server answered: its HTTP status, and the object."""

    status: int
    document: dict[str, Any]


class Transport:
    """Sends requests to one API server; use it in an `async with` block."""

    def __init__(self, access: ClusterAccess, patience: Patience) -> None:
        self.server = access.server
        self._access = access
        self._patience = patience
        self._redact = Redactor(access.list_secrets())
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Transport:
        headers = {"Accept": "application/json", "User-Agent": "stackyard"}
        if self._access.token is not None:
            headers["Authorization"] = f"Bearer {self._access.token}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                ssl=self._access.make_context(), limit=_CONNECTIONS, socket_factory=self._sockets.make
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            # The proxy of the environment is for other machines.
            trust_env=not is_loopback(yarl.URL(self.server).host or ""),
            read_bufsize=2**18,
        )
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    async def send(
        self,
        request: Request,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> Answer:
        """Send a request; send it again while the API server is away, since each of ours may come twice.

        Args:
            request: The method and path.
            query: The parameters.
            body: The object to send.
            secrets: Values of the body that must not appear in an error.

        Raises:
            KubernetesRefusedError: The answer is an error.
            KubernetesUnreachableError: No answer came.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._patience.away_s
        for pause_s in _AGAIN:
            wait_s = pause_s
            try:
                answer = await self._send_once(request, query, body)
            except KubernetesUnreachableError:
                if loop.time() + wait_s > until:
                    raise
            else:
                if answer.status < 400:
                    return answer
                status = self._read_status(answer, secrets)
                wait_s = status.retry_after_s or pause_s
                if answer.status not in _BUSY or loop.time() + wait_s > until:
                    raise make_refused_error(request, status)
            await asyncio.sleep(wait_s)
        raise AssertionError("the pauses have no end")

    async def _send_once(
        self, request: Request, query: Mapping[str, str] | None, body: Mapping[str, Any] | None
    ) -> Answer:
        timeout = aiohttp.ClientTimeout(total=self._patience.answer_s, sock_connect=_CONNECT_S)
        async with self._open(request, query, body, timeout) as response:
            data = await _read_body(response)
            try:
                document = parse_json(data, LARGE) if data else {}
            except JsonError:
                document = {"message": data[:200].decode("utf-8", "replace")}
                if response.status < 400:
                    raise self._unreachable(request, "its answer is not JSON") from None
            if not isinstance(document, dict):
                raise self._unreachable(request, "its answer is not a JSON object")
            if after := response.headers.get("Retry-After", ""):
                document.setdefault("retryAfter", after)
            return Answer(status=response.status, document=document)

    @contextlib.asynccontextmanager
    async def _open(
        self,
        request: Request,
        query: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise self._unreachable(request, "the client is not open, which is a bug in stackyard")
        options: dict[str, Any] = {"timeout": timeout, "params": dict(query or {}), "allow_redirects": False}
        if body is not None:
            kind = _PATCH if request.method == "PATCH" else "application/json"
            options |= {"data": orjson.dumps(body), "headers": {"Content-Type": kind}}
        if self._access.server_name:
            options["server_hostname"] = self._access.server_name
        try:
            url = yarl.URL(f"{self.server}{request.path}", encoded=True)
            async with self._session.request(request.method, url, **options) as response:
                try:
                    yield response
                finally:
                    # A farewell on a stream that is left early would wait for the server.
                    if response.connection is not None and response.connection.transport is not None:
                        response.connection.transport.abort()
        except (aiohttp.ClientError, TimeoutError, OSError) as err:
            raise self._unreachable(request, describe_failure(err)) from err

    async def stream(
        self, request: Request, query: Mapping[str, str], *, silence_s: float
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the JSON objects of a stream, one a line, until the server ends it.

        Args:
            request: The method and path.
            query: The parameters.
            silence_s: After how long without a byte the connection counts as broken.

        Raises:
            KubernetesRefusedError: The answer is an error.
            KubernetesUnreachableError: The connection broke.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=silence_s)
        async with self._open(request, query, None, timeout) as response:
            if response.status >= 400:
                data = await _read_body(response)
                with contextlib.suppress(JsonError):
                    document = parse_json(data) if data else {}
                    found = Answer(status=response.status, document=document)
                    raise make_refused_error(request, self._read_status(found, ()))
                raise self._unreachable(request, f"the answer was {response.status}")
            async for line in _split_lines(response):
                yield self._read_line(request, line)

    def _read_line(self, request: Request, line: bytes) -> dict[str, Any]:
        try:
            document = parse_json(line, LARGE)
        except JsonError:
            raise self._unreachable(request, "a line of its stream is cut off or not JSON") from None
        if not isinstance(document, dict):
            raise self._unreachable(request, "a line of its stream is not a JSON object")
        return document

    def read_failure(self, document: Mapping[str, Any]) -> Status:
        """Read the `Status` that a stream has in the place of an object."""
        code = document.get("code")
        found = Answer(status=code if isinstance(code, int) else 500, document=dict(document))
        return self._read_status(found, ())

    def _read_status(self, answer: Answer, secrets: tuple[str, ...]) -> Status:
        redact = self._redact.with_secrets(secrets) if secrets else self._redact
        details = answer.document.get("details")
        details = details if isinstance(details, dict) else {}
        causes = tuple(
            Cause(
                reason=str(cause.get("reason", "")),
                message=redact(str(cause.get("message", ""))),
                field=redact(str(cause.get("field", ""))),
            )
            for cause in details.get("causes") or ()
            if isinstance(cause, dict)
        )
        after = details.get("retryAfterSeconds") or answer.document.get("retryAfter")
        return Status(
            code=answer.status,
            reason=str(answer.document.get("reason") or ""),
            message=redact(str(answer.document.get("message") or "")),
            causes=causes,
            retry_after_s=float(str(after)) if str(after or "").isdecimal() else None,
        )

    def _unreachable(self, request: Request, reason: str) -> KubernetesUnreachableError:
        return KubernetesUnreachableError(request, self.server, reason)


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _LARGEST_ANSWER_MIB * 2**20:
            raise aiohttp.ClientPayloadError(f"the answer is larger than {_LARGEST_ANSWER_MIB} MiB")
        parts.append(part)
    return b"".join(parts)


async def _split_lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield lines of any length up to the limit; aiohttp's own reader takes short ones only."""
    rest = bytearray()
    async for part in response.content.iter_any():
        rest += part
        *lines, last = bytes(rest).split(b"\n") if b"\n" in part else [bytes(rest)]
        for line in filter(None, lines):
            yield line
        rest = bytearray(last)
        if len(rest) > _LARGEST_LINE_BYTES:
            raise aiohttp.ClientPayloadError("a line of the stream is too long")
