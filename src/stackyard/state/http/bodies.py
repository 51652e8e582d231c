"""Reading the body of a request: within limits, whole, decompressed and checked."""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import StackyardError
from stackyard.state.refusals import BodyRefusedError

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["BodyTooLargeError", "SentBody", "md5_of", "read_body", "takes_gzip", "unzip"]

_GZIP_OR_ZLIB = 47


class BodyTooLargeError(StackyardError):
    """A client of the state service sent more than the service takes."""

    code = "E-STATE-TOO-LARGE"
    summary = "The state is larger than the service takes"
    default_remedy = "Raise the limit of the service (--max-body), or split the state."


@dataclass(frozen=True, slots=True)
class SentBody:
    """A body as it was sent."""

    data: bytes
    encoding: str
    md5: str | None

    def decode(self, most_bytes: int) -> tuple[bytes, str | None]:
        """Return the body decompressed, and the checksum that it is still to be compared with.

        Raises:
            BodyTooLargeError: It is larger than is taken.
            BodyRefusedError: It is not compressed as it says.
        """
        if self.encoding in ("", "identity"):
            return self.data, self.md5
        if self.encoding not in ("gzip", "deflate"):
            raise BodyRefusedError(f"The body is compressed in an unknown way: {self.encoding[:40]!r}.")
        # The checksum is one of what was sent; some clients make it of what they compressed.
        is_checked = self.md5 is not None and self.md5 == md5_of(self.data)
        return unzip(self.data, most_bytes), None if is_checked else self.md5


async def read_body(request: web.BaseRequest, most_bytes: int) -> SentBody:
    """Return the body of a request.

    Raises:
        BodyTooLargeError: It is larger than is taken.
    """
    declared = request.content_length
    if declared is not None and declared > most_bytes:
        raise BodyTooLargeError(f"The body has {declared} bytes; at most {most_bytes} are taken.")
    data = await request.read()
    if len(data) > most_bytes:
        raise BodyTooLargeError(f"The body has {len(data)} bytes; at most {most_bytes} are taken.")
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    return SentBody(data, encoding, request.headers.get("Content-MD5"))


def unzip(data: bytes, most_bytes: int) -> bytes:
    """Return what was compressed, never more than is taken.

    Raises:
        BodyTooLargeError: It is larger.
        BodyRefusedError: It is damaged or cut off.
    """
    unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = unpacker.decompress(data, most_bytes + 1)
    except zlib.error as err:
        raise BodyRefusedError("The body is not compressed as it says.") from err
    if len(plain) > most_bytes:
        raise BodyTooLargeError(f"The body has more than {most_bytes} bytes when it is decompressed.")
    if not unpacker.eof or unpacker.unused_data:
        raise BodyRefusedError("The compressed body is truncated, or has data after its end.")
    return plain


def md5_of(data: bytes) -> str:
    """Return the checksum of a body as its header spells it."""
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()


def takes_gzip(request: web.BaseRequest) -> bool:
    """Return whether a client takes a compressed answer."""
    for part in request.headers.get("Accept-Encoding", "").lower().split(","):
        name, _, quality = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
