"""Loose objects of a repository, brought over in one pack: a file for each is what takes long.

Only small objects whose content has their number go into it. All others are left to the caller, as files
that git complains of when it reads them.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["make_pack"]

# Larger ones are copied as they are: to compress them again takes longer than to make a file.
_LARGEST_FILE_BYTES = 64 * 1024
_LARGEST_BYTES = 2**20
# What a pack holds at most: it is put together in memory.
_PACK_BYTES = 64 * 2**20
_HEADER = re.compile(rb"(commit|tree|blob|tag) ([0-9]{1,10})\0")
_KINDS = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}


def make_pack(objects: Path, numbers: Iterable[str], object_format: str) -> tuple[bytes, set[str]]:
    """Return a pack of loose objects, and which of them are in it.

    Args:
        objects: The folder of the objects of a repository.
        numbers: Which; those that are not small and whole are left out.
        object_format: The hash of the repository.
    """
    entries: dict[str, bytes] = {}
    total = 0
    for number in numbers:
        stored = _read(objects / number[:2] / number[2:])
        entry = None if stored is None else _entry(stored, number, object_format)
        if entry is not None:
            entries[number] = entry
            total += len(entry)
            if total > _PACK_BYTES:
                break
    pack = b"".join((b"PACK", struct.pack(">II", 2, len(entries)), *entries.values()))
    return pack + hashlib.new(object_format, pack, usedforsecurity=False).digest(), set(entries)


def _read(path: Path) -> bytes | None:
    """Return the bytes of a small regular file; None for anything else, and for one that went meanwhile."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        stored = os.read(opened, _LARGEST_FILE_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(opened)
    return stored if len(stored) <= _LARGEST_FILE_BYTES else None


def _entry(stored: bytes, number: str, object_format: str) -> bytes | None:
    """Return a loose object as a pack holds it; None where it is large, damaged or another object."""
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(stored, _LARGEST_BYTES)
    except zlib.error:
        return None
    header = _HEADER.match(plain)
    if not unpacker.eof or header is None or len(plain) - header.end() != int(header[2]):
        return None
    if hashlib.new(object_format, plain, usedforsecurity=False).hexdigest() != number:
        return None
    size = int(header[2])
    head = bytearray([_KINDS[header[1]] << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + zlib.compress(plain[header.end() :], 1)
