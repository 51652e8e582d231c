"""Making responses: any status, any reason phrase, no way to inject a header."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

__all__ = ["is_chunked", "respond"]

# What may not be in a status line or a header. A run of them becomes one space.
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")

# A larger body is sent in pieces of this size: encrypting it whole would hold up every other client.
_PIECE_BYTES = 256 * 1024


def respond(
    status: int,
    body: bytes = b"",
    *,
    reason: str | None = None,
    content_type: str = "application/json",
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
) -> web.Response:
    """Return a response.

    Args:
        status: Any three-digit status, also one that HTTP does not know (595).
        body: The whole body.
        reason: The text after the status; None gives the usual one. Line breaks and other control characters
            become spaces, text outside ASCII is sent as UTF-8.
        content_type: The Content-Type of a body that is not empty, with its charset where it needs one. A
            Content-Type among `headers` wins.
        headers: More headers, as pairs where a name comes twice. Their values are made safe like `reason`.
    """
    fields: CIMultiDict[str] = CIMultiDict()
    if headers is not None:
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        for name, value in pairs:
            fields.add(name, _one_line(value))
    if body and hdrs.CONTENT_TYPE not in fields:
        fields[hdrs.CONTENT_TYPE] = _one_line(content_type)
    return web.Response(
        status=status,
        reason=None if reason is None else _one_line(reason),
        body=body if len(body) <= _PIECE_BYTES else _ChunkedBody(body),
        headers=fields,
    )


class _ChunkedBody(aiohttp.Payload):
    """A large body that is sent piece by piece, with other clients served in between."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._size = len(body)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send the body."""
        view = memoryview(self._value)
        for start in range(0, len(view), _PIECE_BYTES):
            await writer.write(view[start : start + _PIECE_BYTES])
            await asyncio.sleep(0)


def is_chunked(request: web.BaseRequest) -> bool:
    """Return whether the body comes in chunks, so that its length is not known before its end."""
    return "chunked" in request.headers.get(hdrs.TRANSFER_ENCODING, "").lower()


def _one_line(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    # A lone surrogate cannot be sent.
    return _CONTROL.sub(" ", text.encode("utf-8", "replace").decode()).strip()
