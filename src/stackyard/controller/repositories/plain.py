"""The dumb protocol of git over HTTP, and single files: looked up, never opened by a path of the client.

The files of the dumb protocol are those of our own copy, and only under the names that git gives them. A
single file is found in the tree of `_working`, where there is neither a way up nor a link to elsewhere.
"""

from __future__ import annotations

import mimetypes
import os
import re
from typing import TYPE_CHECKING

from aiohttp import web

from stackyard.base.process import open_files
from stackyard.controller.answers import answer_file
from stackyard.controller.refusals import Code, RequestRefusedError
from stackyard.controller.repositories.spool import busy

if TYPE_CHECKING:
    from stackyard.controller.repositories.served import ServedRepository
    from stackyard.controller.repositories.spool import Spool, Spools

__all__ = ["is_git_path", "send_file", "send_git_file"]

_TEXT = "text/plain; charset=utf-8"
_GIT_FILES = (
    (re.compile(r"HEAD|packed-refs|info/refs|objects/info/packs"), _TEXT),
    (re.compile(r"objects/[0-9a-f]{2}/(?:[0-9a-f]{38}|[0-9a-f]{62})"), "application/x-git-loose-object"),
    (re.compile(r"objects/pack/pack-[0-9a-f]{40,64}\.pack"), "application/x-git-packed-objects"),
    (re.compile(r"objects/pack/pack-[0-9a-f]{40,64}\.idx"), "application/x-git-packed-objects-toc"),
)
# What a client may ask for at the beginning, and where a look at the repository is worth its while.
_FIRST = ("HEAD", "info/refs")
_RESERVED = ("objects", "info", "refs")


def is_git_path(path: str) -> bool:
    """Return whether a path belongs to the dumb protocol, and is never that of a single file."""
    return path in ("HEAD", "packed-refs") or path.split("/", 1)[0] in _RESERVED


async def send_git_file(request: web.BaseRequest, served: ServedRepository, path: str) -> web.StreamResponse:
    """Send a file of the dumb protocol.

    Raises:
        RequestRefusedError: There is none.
    """
    if path in _FIRST:
        await served.refresh()
    else:
        served.current()
    content_type = next((kind for pattern, kind in _GIT_FILES if pattern.fullmatch(path)), None)
    if content_type is None:
        raise _not_found(path)
    try:
        descriptor = os.open(served.mirror.bare / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as err:
        raise (busy() if open_files.is_shortage(err) else _not_found(path)) from err
    return await answer_file(request, descriptor, content_type)


async def send_file(
    request: web.BaseRequest, served: ServedRepository, path: str, spools: Spools
) -> web.StreamResponse:
    """Send a file of the working tree.

    Raises:
        RequestRefusedError: There is no regular file of this path that may leave the machine.
    """
    snapshot = await served.refresh()
    file = snapshot.files.get(path)
    if file is None:
        raise _not_found(path)
    blob = file.blob

    async def fill(spool: Spool) -> bool:
        await served.mirror.read_blob(blob, spool.add)
        return True

    spool = spools.get((served.name, "blob", blob), fill)
    guessed, _ = mimetypes.guess_type(path, strict=False)
    # A page or an image with scripts in it must not become one of ours in someone's browser.
    is_active = guessed is None or guessed.startswith("text/") or "html" in guessed or "xml" in guessed
    headers = {
        "Content-Type": _TEXT if is_active else str(guessed),
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
        "ETag": f'"{blob}"',
    }
    response = web.StreamResponse(headers=headers)
    response.content_length = file.size
    await spool.wait_until_begun()
    if not spool.size and open_files.is_shortage(spool.error):
        raise busy()
    await response.prepare(request)
    if request.method != "HEAD":
        async for piece in spool.pieces():
            await response.write(piece)
        if not spool.is_whole:
            raise ConnectionError("the file could not be read to its end")
    await response.write_eof()
    return response


def _not_found(path: str) -> RequestRefusedError:
    return RequestRefusedError(404, Code.NOT_FOUND, f"There is no file '{path[:200]}'.")
