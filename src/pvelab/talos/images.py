"""Talos images: recognised by their first bytes or by their URL, and made for the factory's double.

An image of the lab is small. It begins with a line that says what it is (in an ISO that is the system area,
which no file system uses), followed by bytes that are always the same for one image. A stand-in for a
download that was not made is known by its URL, which has the form of a factory's.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import re
import struct
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.talosapi.schematic import QEMU_GUEST_AGENT, WELL_KNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "AGENT",
    "extensions_of",
    "make_image",
    "parse_image_name",
    "talos_at_url",
    "talos_in_file",
    "unpack_zst",
]

AGENT = QEMU_GUEST_AGENT
_MARK = b"TALOS-LAB-IMAGE "
_KIB = 1024
_ISO_SIZE = 512 * _KIB
_DISK_SIZE = 1024 * _KIB
# What Talos makes of a disk image: the size of the disk that it is on.
_VIRTUAL_DISK = 1246 * _KIB * _KIB
_QCOW2_MARK_AT = 512
_URL = re.compile(r"/image/([0-9a-f]{64})/(v\d+\.\d+\.\d+[^/?]*)/([^/?]+)(?:\?.*)?$")
_NAME = re.compile(
    r"(?P<platform>[a-z]+)-(?P<arch>amd64|arm64)(?P<secureboot>-secureboot)?\."
    r"(?P<kind>iso|raw|raw\.xz|raw\.zst|raw\.gz|qcow2)"
)


def parse_image_name(name: str) -> tuple[dict[str, Any], str] | None:
    """Read `nocloud-amd64-secureboot.iso`: return what it says and the kind of file, None for no image."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    said = {
        "platform": found["platform"],
        "arch": found["arch"],
        "secureboot": found["secureboot"] is not None,
        "iso": found["kind"] == "iso",
    }
    return said, found["kind"]


def talos_at_url(url: str) -> dict[str, Any] | None:
    """Return what a factory's image is by its URL, None for any other URL."""
    found = _URL.search(url)
    named = parse_image_name(found[3]) if found else None
    if found is None or named is None:
        return None
    said: dict[str, Any] = {"schematic": found[1], "version": found[2], **named[0]}
    return {**said, "extensions": list(extensions_of(found[1])), "kernel_args": []}


def extensions_of(schematic: str) -> tuple[str, ...]:
    """Return the extensions of a schematic that no factory of the lab has: believed to be the guest agent."""
    known = WELL_KNOWN.get(schematic)
    return (AGENT,) if known is None else known.extensions


def talos_in_file(path: Path) -> dict[str, Any] | None:
    """Return which Talos image a file is, None if it is none."""
    with path.open("rb") as stream:
        start = stream.read(_QCOW2_MARK_AT + 64 * _KIB)
    for place in (0, _QCOW2_MARK_AT):
        if start.startswith(_MARK, place):
            line = start[place + len(_MARK) :].partition(b"\n")[0]
            try:
                found = parse_json(line, SMALL)
            except JsonError:
                return None
            return found if isinstance(found, dict) else None
    return None


def make_image(talos: Mapping[str, Any], kind: str) -> bytes:
    """Return the bytes of an image: always the same for the same image.

    Args:
        talos: What it is: `schematic version platform arch secureboot iso extensions kernel_args`.
        kind: `iso`, `raw`, `raw.xz`, `raw.zst`, `raw.gz` or `qcow2`.
    """
    header = _MARK + orjson.dumps(dict(talos), option=orjson.OPT_SORT_KEYS) + b"\n"
    if kind == "iso":
        content = bytearray(_filled(header, _ISO_SIZE))
        # A primary volume descriptor, by which programs know an ISO 9660 file.
        content[32 * _KIB : 32 * _KIB + 7] = b"\x01CD001\x01"
        return bytes(content)
    if kind == "qcow2":
        magic = b"QFI\xfb" + struct.pack(">IQIIQ", 3, 0, 0, 16, _VIRTUAL_DISK)
        return _filled(magic.ljust(_QCOW2_MARK_AT, b"\0") + header, _DISK_SIZE)
    raw = _filled(header, _DISK_SIZE)
    match kind:
        case "raw.xz":
            return lzma.compress(raw, preset=0)
        case "raw.gz":
            return gzip.compress(raw, compresslevel=1, mtime=0)
        case "raw.zst":
            return _pack_zst(raw)
    return raw


def _filled(header: bytes, size: int) -> bytes:
    """Return a header and bytes that follow from it, up to a size."""
    block = hashlib.shake_256(header).digest(64 * _KIB)
    return (header + block * (size // len(block) + 1))[:size]


_ZST_MAGIC = b"\x28\xb5\x2f\xfd"
_ZST_BLOCK = 128 * _KIB


def _pack_zst(data: bytes) -> bytes:
    """Return a Zstandard frame (RFC 8878) of blocks that are not compressed."""
    # One segment, its size in four bytes; no checksum.
    parts = [_ZST_MAGIC, b"\xa0", struct.pack("<I", len(data))]
    for place in range(0, len(data), _ZST_BLOCK):
        block = data[place : place + _ZST_BLOCK]
        is_last = place + _ZST_BLOCK >= len(data)
        parts += [(len(block) << 3 | is_last).to_bytes(3, "little"), block]
    return b"".join(parts)


def unpack_zst(path: Path) -> bytes | None:
    """Return what is in a Zstandard frame of this module's own, None for one that is compressed."""
    if path.stat().st_size > 2 * _DISK_SIZE:
        return None
    data = path.read_bytes()
    if not data.startswith(_ZST_MAGIC + b"\xa0"):
        return None
    place, found = 9, []
    while True:
        head = int.from_bytes(data[place : place + 3], "little")
        size = head >> 3
        if len(data) < place + 3 + size or head >> 1 & 3:
            return None
        found.append(data[place + 3 : place + 3 + size])
        place += 3 + size
        if head & 1:
            return b"".join(found)
