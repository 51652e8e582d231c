"""The smart protocol of git over HTTP, versions 0 to 2: the real `git upload-pack` answers."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from aiohttp import web

from stackyard.base import serving
from stackyard.base.process import open_files
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.repositories.spool import busy
from stackyard.state.http.bodies import BodyTooLargeError, unzip
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from stackyard.controller.repositories.served import ServedRepository
    from stackyard.controller.repositories.spool import Spool, Spools

__all__ = ["SERVICE", "advertise", "upload_pack"]

SERVICE = "git-upload-pack"
_NOT_KEPT = {"Cache-Control": "no-cache, max-age=0, must-revalidate"}
# What a client has and wants, a line for each commit; thousands of them fit.
_LARGEST_BYTES = 4 * 2**20
_PROTOCOL = re.compile(r"version=[0-9](:[a-z0-9=.-]{1,40}){0,4}")


async def advertise(request: web.BaseRequest, served: ServedRepository, spools: Spools) -> web.StreamResponse:
    """Tell a client what there is, in the version that it speaks."""
    snapshot, protocol = await served.refresh(), _protocol(request)

    async def fill(spool: Spool) -> bool:
        if not protocol.startswith("version=2"):
            spool.add(b"001e# service=git-upload-pack\n0000")
        spool.add(await served.mirror.advertise(protocol))
        return True

    spool = spools.get((served.name, snapshot.state, "refs", protocol), fill)
    return await _send_spool(request, spool, f"application/x-{SERVICE}-advertisement")


async def upload_pack(
    request: web.BaseRequest, served: ServedRepository, spools: Spools
) -> web.StreamResponse:
    """Send a client what it needs and has not."""
    kind = f"application/x-{SERVICE}-request"
    if request.content_type != kind:
        raise RequestRefusedError(415, Code.BAD_REQUEST, f"The body has to be {kind}.")
    asked, protocol = await _body(request), _protocol(request)
    snapshot = served.current()

    async def fill(spool: Spool) -> bool:
        return await served.mirror.upload_pack(asked, protocol, spool.add)

    key = (served.name, snapshot.state, hashlib.sha256(asked).digest(), protocol)
    return await _send_spool(request, spools.get(key, fill), f"application/x-{SERVICE}-result")


async def _send_spool(request: web.BaseRequest, spool: Spool, content_type: str) -> web.StreamResponse:
    await spool.wait_until_begun()
    if not spool.size and open_files.is_shortage(spool.error):
        raise busy()
    if not spool.size:
        raise RequestRefusedError(400, Code.BAD_REQUEST, "The request is not valid for git.")
    response = web.StreamResponse(headers={"Content-Type": content_type, **_NOT_KEPT})
    if spool.has_ended:
        response.content_length = spool.size
    else:
        response.enable_chunked_encoding()
    await response.prepare(request)
    if request.method != "HEAD":
        async for piece in spool.pieces():
            await response.write(piece)
        if spool.error is not None:
            # Half of an answer with a proper end would pass for a whole one.
            raise ConnectionError("the answer was not completed")
    await response.write_eof()
    return response


async def _body(request: web.BaseRequest) -> bytes:
    declared = request.content_length
    if declared is None and not serving.is_chunked(request):
        return b""
    if declared is not None and declared > _LARGEST_BYTES:
        raise _make_too_large_error()
    read = bytearray()
    async for piece in request.content.iter_any():
        read += piece
        if len(read) > _LARGEST_BYTES:
            raise _make_too_large_error()
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return bytes(read)
    try:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise RequestRefusedError(415, Code.BAD_REQUEST, "The body is compressed in an unknown way.")
        return unzip(bytes(read), 4 * _LARGEST_BYTES)
    except BodyTooLargeError as err:
        raise _make_too_large_error() from err
    except BodyRefusedError as err:
        raise RequestRefusedError(400, Code.BAD_REQUEST, err.detail) from err


def _make_too_large_error() -> RequestRefusedError:
    detail = f"At most {_LARGEST_BYTES} bytes are taken."
    return RequestRefusedError(413, Code.TOO_LARGE, detail, headers={"Connection": "close"})


def _protocol(request: web.BaseRequest) -> str:
    """Return the version that a client asks for; one that no one knows counts as none."""
    asked = request.headers.get("Git-Protocol", "")
    return asked if _PROTOCOL.fullmatch(asked) else ""
