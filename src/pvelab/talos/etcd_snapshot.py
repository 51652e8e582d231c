"""Snapshots of the lab's etcd: a bbolt database without keys, as programs that check one expect it.

The database has two meta pages, an empty freelist, and a leaf page with the buckets `key` and `meta`. What
the etcd holds, packed, is in the unused part of the leaf, which is as many pages long as it takes. etcd ends
its snapshots with the SHA-256 of what is before.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["make_snapshot", "read_snapshot"]

_PAGE = 4096
_LEAF, _META, _FREELIST = 0x02, 0x04, 0x10
_HEADER = struct.Struct("<QHHI")
_ELEMENT = struct.Struct("<IIII")
_DIGEST = hashlib.sha256().digest_size
_MARK = b"TALOS-LAB-ETCD "
_MARK_AT = 3 * _PAGE + 1024
# More objects than any cluster of the lab has.
_MOST_BYTES = 256 * 2**20


def make_snapshot(documents: Mapping[str, Any]) -> bytes:
    """Return a snapshot of an etcd with these documents."""
    packed = zlib.compress(orjson.dumps(documents))
    content = _MARK + str(len(packed)).encode() + b"\n" + packed
    more = max(0, _MARK_AT + len(content) - 1 - 3 * _PAGE) // _PAGE
    buckets = [(b"key", _bucket([])), (b"meta", _bucket([(b"storageVersion", b"3.6.0")]))]
    leaf = _leaf(3, buckets, is_buckets=True, more_pages=more)
    pages = [_meta(0, 4 + more), _meta(1, 4 + more), _HEADER.pack(2, _FREELIST, 0, 0), leaf]
    made = bytearray(b"".join(page.ljust(_PAGE, b"\0") for page in pages).ljust((4 + more) * _PAGE, b"\0"))
    made[_MARK_AT : _MARK_AT + len(content)] = content
    return bytes(made) + hashlib.sha256(made).digest()


def read_snapshot(data: bytes) -> dict[str, Any] | None:
    """Return the documents of a snapshot, None if it is no snapshot of the lab's."""
    content, checksum = data[:-_DIGEST], data[-_DIGEST:]
    if hashlib.sha256(content).digest() != checksum or not content.startswith(_MARK, _MARK_AT):
        return None
    size, _, rest = content[_MARK_AT + len(_MARK) :].partition(b"\n")
    try:
        unpacked = zlib.decompressobj().decompress(rest[: int(size)], _MOST_BYTES)
        found: dict[str, Any] = parse_json(unpacked)
    except (ValueError, zlib.error, JsonError):
        return None
    return found


def _bucket(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """Return a bucket that is small enough to be inside the page of the one around it."""
    return struct.pack("<QQ", 0, 0) + _leaf(0, pairs)


def _leaf(
    number: int, pairs: list[tuple[bytes, bytes]], *, is_buckets: bool = False, more_pages: int = 0
) -> bytes:
    """Return a leaf page; each element says how far from itself its key is."""
    elements, content = b"", b""
    for place, (key, value) in enumerate(pairs):
        distance = _ELEMENT.size * (len(pairs) - place) + len(content)
        elements += _ELEMENT.pack(int(is_buckets), distance, len(key), len(value))
        content += key + value
    return _HEADER.pack(number, _LEAF, len(pairs), more_pages) + elements + content


def _meta(number: int, pages: int) -> bytes:
    """Return a meta page: magic, version, page size, flags, root, freelist, high water, transaction."""
    fields = struct.pack("<IIIIQQQQQ", 0xED0CDAED, 2, _PAGE, 0, 3, 0, 2, pages, number)
    return _HEADER.pack(number, _META, 0, 0) + fields + struct.pack("<Q", _fnv1a(fields))


def _fnv1a(data: bytes) -> int:
    found = 0xCBF29CE484222325
    for one in data:
        found = (found ^ one) * 0x100000001B3 % 2**64
    return found
