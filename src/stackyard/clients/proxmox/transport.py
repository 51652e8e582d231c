"""One request over the wire: connect, verify, send, read the answer, and say exactly how far it got."""

from __future__ import annotations

import contextlib
import enum
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import aiohttp
import yarl

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.http_failures import describe_failure
from stackyard.base.sockets import ClientSockets
from stackyard.clients.proxmox.failures import Call, ProxmoxUnreachableError, Refusal, UntrustedServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stackyard.base.redaction import Redactor
    from stackyard.clients.proxmox.connection import Connection

__all__ = [
    "Body",
    "EncodedForm",
    "LostAnswerError",
    "LostReply",
    "NotSentError",
    "Reply",
    "Transport",
    "UnusableAnswerError",
    "Upload",
    "describe_untrusted",
    "is_here",
]

_PREFIX = "/api2/json"
# The proxy of a node closes an idle connection after five seconds; a call must not run into that.
_KEPT_ALIVE_S = 3.0
_CONNECT_S = 15.0
# A list of ten thousand guests has a tenth of this; a guest can make its agent answer without end.
_LARGEST_ANSWER_MIB = 64


class LostReply(enum.StrEnum):
    """Why an answer did not come."""

    BROKEN = "the connection broke before the answer"
    TIMEOUT = "no answer came in time"


class NotSentError(Exception):
    """The connection failed, so that the call did nothing."""


class LostAnswerError(Exception):
    """The call may have been received, but its answer never came."""

    def __init__(self, why: LostReply) -> None:
        super().__init__(why.value)


class UnusableAnswerError(Exception):
    """The call was answered, and the answer is too large, or nothing that can be read."""


@dataclass(frozen=True, slots=True)
class EncodedForm:
    """Parameters of a call that changes something, encoded."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that is sent along with its parameters; it is opened again for each try."""

    fields: Mapping[str, str]
    filename: str
    open: Callable[[], BinaryIO]


Body = EncodedForm | Upload | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer: its data and what of it is pending, or why it was refused."""

    data: Any = None
    changes: str = ""
    refusal: Refusal | None = None


class Transport:
    """Sends single requests, without trying again; use it in an `async with` block."""

    def __init__(self, connection: Connection, redactor: Redactor) -> None:
        self._base = connection.base_url()
        self._context = connection.trust.context()
        self._digest = connection.trust.digest()
        self._limit = connection.connections
        self._timeout = aiohttp.ClientTimeout(total=connection.timeout_s, sock_connect=_CONNECT_S)
        self._redact = redactor
        self._sockets = ClientSockets()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Transport:
        pinned = aiohttp.Fingerprint(self._digest) if self._digest else True
        connector = aiohttp.TCPConnector(
            ssl=pinned,
            limit=self._limit,
            keepalive_timeout=_KEPT_ALIVE_S,
            socket_factory=self._sockets.make,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            # The jar would answer cookies that we set ourselves.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            # The proxy of the environment is for other machines.
            trust_env=not is_here(self._base),
        )
        # The library would send PUT and DELETE again by itself: whether that is right, only the caller knows.
        self._session._retry_connection = False
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            await self._sockets.close()

    async def send(
        self, call: Call, *, query: str, body: Body, headers: Mapping[str, str], timeout_s: float | None
    ) -> Reply:
        """Send a request and return its answer.

        Raises:
            NotSentError: The connection failed; the call did nothing.
            LostAnswerError: It may have been received.
            UnusableAnswerError: It was answered with something that cannot be used.
            UntrustedServerError: The server is not the one that is trusted.
        """
        if self._session is None:
            raise ProxmoxUnreachableError(call, "The client is not open. This is a bug in stackyard.")
        url = yarl.URL(f"{self._base}{_PREFIX}{call.path}{'?' + query if query else ''}", encoded=True)
        options: dict[str, Any] = {"headers": {"Accept": "application/json", **headers}, "ssl": self._context}
        if timeout_s is not None:
            options["timeout"] = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S)
        try:
            with contextlib.ExitStack() as opened:
                _add_body(options, body, opened)
                async with self._session.request(call.method, url, **options) as response:
                    return self._read(response.status, response.reason or "", await _body(response))
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ServerFingerprintMismatch) as err:
            got = err.got if isinstance(err, aiohttp.ServerFingerprintMismatch) else None
            seen = None if got is None else got.hex(":").upper()
            raise UntrustedServerError(call, describe_untrusted(self._base, err), seen=seen) from err
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as err:
            raise NotSentError(describe_failure(err)) from err
        except TimeoutError as err:
            raise LostAnswerError(LostReply.TIMEOUT) from err
        except (aiohttp.ClientError, OSError) as err:
            raise LostAnswerError(LostReply.BROKEN) from err

    def _read(self, status: int, reason: str, body: bytes) -> Reply:
        document: Any = None
        with contextlib.suppress(JsonError):
            document = parse_json(body, LARGE) if body else None
        fields = document if isinstance(document, dict) else {}
        if status < 400:
            if body and not isinstance(document, dict):
                raise UnusableAnswerError("is not a JSON object")
            return Reply(data=fields.get("data"), changes=str(fields.get("changes") or ""))
        errors = fields.get("errors")
        found = errors if isinstance(errors, dict) else {}
        return Reply(
            refusal=Refusal(
                status=status,
                reason=self._redact(reason.strip()),
                errors={str(name): self._redact(str(text).strip()) for name, text in found.items()},
                message=self._redact(str(fields.get("message") or "").strip()),
            )
        )


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer, up to the size that an answer may have."""
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > _LARGEST_ANSWER_MIB * 2**20:
            raise UnusableAnswerError(f"is larger than {_LARGEST_ANSWER_MIB} MiB")
        parts.append(part)
    return b"".join(parts)


def is_here(base: str) -> bool:
    """Return whether an address is on this machine, for which no proxy is used."""
    host = yarl.URL(base).host or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _add_body(options: dict[str, Any], body: Body, opened: contextlib.ExitStack) -> None:
    if isinstance(body, EncodedForm) and body.text:
        options["data"] = body.text.encode()
        options["headers"]["Content-Type"] = "application/x-www-form-urlencoded"
    elif isinstance(body, Upload):
        form = aiohttp.FormData(default_to_multipart=True)
        for name, value in body.fields.items():
            form.add_field(name, value)
        content = opened.enter_context(body.open())
        form.add_field("filename", content, filename=body.filename, content_type="application/octet-stream")
        options["data"] = form


def describe_untrusted(
    base: str, err: aiohttp.ClientConnectorCertificateError | aiohttp.ServerFingerprintMismatch
) -> str:
    """Say why a server is not trusted."""
    if isinstance(err, aiohttp.ServerFingerprintMismatch):
        return f"The certificate of {base} has the fingerprint {err.got.hex(':').upper()}, not the one given."
    why = getattr(err.certificate_error, "verify_message", "") or str(err.certificate_error)
    return f"The certificate of {base} cannot be verified: {why}."
