"""The contents of states: compressed, under their hash, and checked against it whenever they are read."""

from __future__ import annotations

import hashlib
import uuid
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.objects import Objects, StoreDamagedError
from stackyard.state import layout

if TYPE_CHECKING:
    from stackyard.state.model import Version

__all__ = ["Body", "make_body_name", "pack", "read_body", "sha256_of", "unpack"]

# gzip's own format, so that a client that takes gzip is sent what is stored.
_GZIP = 31
# A state of 20 MB takes 0.1 s; a higher level takes five times as long for a fifth less.
_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Body:
    """A content as it is and as it is stored, both the same."""

    data: bytes
    gzipped: bytes

    def __repr__(self) -> str:
        return f"Body({len(self.data)} bytes)"


def sha256_of(data: bytes) -> str:
    """Return the hash of a content."""
    return hashlib.sha256(data).hexdigest()


def make_body_name(sha256: str) -> str:
    """Return a name for a content that no one else uses.

    The number behind the hash keeps a content that is being written from being swept as a left-over of an
    earlier writer of the same.
    """
    return f"{sha256}-{uuid.uuid4().hex[:12]}"


def pack(data: bytes) -> bytes:
    """Return a content compressed."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(data) + packer.flush()


def unpack(packed: bytes, key: str) -> bytes:
    """Return a content as it was.

    Raises:
        StoreDamagedError: It is damaged.
    """
    try:
        return zlib.decompress(packed, _GZIP)
    except zlib.error as err:
        raise StoreDamagedError(f"{key} is damaged: {err}.") from err


def read_body(objects: Objects, name: str, version: Version) -> Body:
    """Return the content of a version.

    Raises:
        StoreDamagedError: It is missing, or not what was written.
    """
    key = layout.body(name, version.body)
    stored = objects.get(key)
    if stored is None:
        raise StoreDamagedError(f"{key}, the content of version {version.number} of {name}, is missing.")
    data = unpack(stored.data, key)
    if sha256_of(data) != version.sha256:
        raise StoreDamagedError(f"{key}, the content of version {version.number} of {name}, was changed.")
    return Body(data, stored.data)
