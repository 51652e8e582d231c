"""The answers of the controller: JSON, errors as JSON, and files that are sent piece by piece."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from stackyard.base import serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.controller.refusals import RequestRefusedError

__all__ = ["answer_file", "answer_json", "answer_refusal", "answer_text"]

_PIECE_BYTES = 256 * 1024
_FROM = re.compile(r"bytes=(\d{1,18})-")
# No one's browser should guess what a file is, keep it, or run something in it.
_GUARDED = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
}


def answer_json(document: Mapping[str, Any], *, status: int = 200) -> web.Response:
    """Return an object as a response."""
    return serving.respond(status, orjson.dumps(document), headers=_GUARDED)


def answer_text(text: bytes, content_type: str, *, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a text as a response."""
    return serving.respond(200, text, content_type=content_type, headers={**_GUARDED, **(headers or {})})


def answer_refusal(err: RequestRefusedError) -> web.Response:
    """Return a refusal as a response."""
    body = orjson.dumps({"error": {"code": err.wire_code, "message": err.detail}})
    response = serving.respond(err.status, body, headers={**_GUARDED, **err.headers})
    if err.headers.get("Connection") == "close":
        response.force_close()
    return response


async def answer_file(request: web.BaseRequest, descriptor: int, content_type: str) -> web.StreamResponse:
    """Send an open file, from where the client already has it, with others served in between; closes it."""
    try:
        size = os.fstat(descriptor).st_size
        wanted = _FROM.fullmatch(request.headers.get("Range", ""))
        start = int(wanted[1]) if wanted else 0
        if wanted is None or start >= size:
            start = 0
        headers = {**_GUARDED, "Content-Type": content_type, "Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        response.content_length = size - start
        await response.prepare(request)
        while request.method != "HEAD" and start < size:
            piece = os.pread(descriptor, min(_PIECE_BYTES, size - start), start)
            if not piece:
                raise ConnectionError("the file became shorter while it was sent")
            await response.write(piece)
            start += len(piece)
            await asyncio.sleep(0)
        await response.write_eof()
        return response
    finally:
        os.close(descriptor)
