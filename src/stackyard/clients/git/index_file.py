"""The index of a repository, read as the file that it is: no program runs and no setting counts.

The index holds, for each tracked file, its content's number and what `stat` said when that was last true. So
whoever knows it can tell which files of the working tree changed without git, whose own comparison may run
filters that the repository names.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["IndexFile", "TrackedFile", "find_git_folder", "read_index_file"]

_HEADER = struct.Struct(">4sII")
# ctime, mtime, device, inode, mode, owner, group, size.
_ENTRY = struct.Struct(">10I")
_SIGNATURE = b"DIRC"
_VERSIONS = (2, 3, 4)
_NAME_MASK = 0xFFF
_EXTENDED, _STAGES, _ASSUME_VALID = 0x4000, 0x3000, 0x8000
_COMPRESSED = 4
# Extensions that keep entries elsewhere, or whole folders as one entry.
_INCOMPLETE = (b"link", b"sdir")
_SHA256 = re.compile(r"^\s*objectformat\s*=\s*\"?sha256\"?\s*$", re.MULTILINE | re.IGNORECASE)


class TrackedFile(NamedTuple):
    """A file of the index.

    Attributes:
        blob: The number of its content.
        mode: Its kind, such as 0o100644 or 0o120000 for a link.
        stat: Modification and change time in nanoseconds, inode and size, each cut to 32 bits as git does.
    """

    blob: str
    mode: int
    stat: tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """What an index holds.

    Attributes:
        files: Files by their path from the top of the working tree; those in conflict have no content.
        written_ns: When it was written: what was changed then or later has to be looked at.
        object_format: The hash of its objects.
        checksum: What differs whenever it holds something else; empty where git wrote none.
    """

    files: dict[str, TrackedFile]
    written_ns: int
    object_format: str
    checksum: str = ""


def find_git_folder(top: Path) -> Path | None:
    """Return the git folder of a working tree, that of a linked one included; nothing where there is none."""
    place = top / ".git"
    if place.is_dir():
        return place
    try:
        said = place.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    named = said.removeprefix("gitdir: ")
    return (top / named) if named != said else None


def read_index_file(git_folder: Path) -> IndexFile | None:
    """Return what an index holds; nothing where it is not whole in itself, or of a form not known here."""
    path = git_folder / "index"
    form = _object_format(git_folder)
    try:
        with path.open("rb") as stream:
            written_ns = os.fstat(stream.fileno()).st_mtime_ns
            data = stream.read()
    except FileNotFoundError:
        # A repository without an index has nothing that is tracked.
        return IndexFile(files={}, written_ns=0, object_format=form)
    except OSError:
        return None
    try:
        files = dict(_entries(data, 32 if form == "sha256" else 20))
    except (struct.error, ValueError, UnicodeDecodeError):
        return None
    checksum = data[-32 if form == "sha256" else -20 :].hex()
    return IndexFile(
        files=files,
        written_ns=written_ns,
        object_format=form,
        checksum=checksum if checksum.strip("0") else "",
    )


def _object_format(git_folder: Path) -> str:
    common = git_folder
    with contextlib.suppress(OSError, UnicodeDecodeError):
        common = git_folder / (git_folder / "commondir").read_text().strip()
    try:
        text = (common / "config").read_text(errors="replace")
    except OSError:
        return "sha1"
    return "sha256" if _SHA256.search(text) else "sha1"


def _entries(data: bytes, hash_bytes: int) -> Iterator[tuple[str, TrackedFile]]:
    signature, version, count = _HEADER.unpack_from(data)
    if signature != _SIGNATURE or version not in _VERSIONS:
        raise ValueError("not an index")
    at, name = _HEADER.size, b""
    unpack, fixed = _ENTRY.unpack_from, _ENTRY.size + hash_bytes
    for _ in range(count):
        ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size = unpack(data, at)
        blob = data[at + _ENTRY.size : at + fixed]
        flags = data[at + fixed] << 8 | data[at + fixed + 1]
        begin = at + fixed + (4 if flags & _EXTENDED else 2)
        if version == _COMPRESSED:
            dropped, begin = _read_offset(data, begin)
            end = data.index(b"\0", begin)
            name = name[: len(name) - dropped] + data[begin:end]
            at = end + 1
        else:
            length = flags & _NAME_MASK
            end = begin + length if length < _NAME_MASK else data.index(b"\0", begin)
            name = data[begin:end]
            at += (end - at + 8) & ~7
        number = "" if flags & _STAGES else blob.hex()
        # "Assume unchanged" is a wish about speed; the file itself is looked at.
        inode = -1 if flags & _ASSUME_VALID else inode
        found = TrackedFile(number, mode, (mtime, mtime_ns, ctime, ctime_ns, inode, size))
        yield name.decode("utf-8", "surrogateescape"), found
    while at < len(data) - hash_bytes:
        if data[at : at + 4] in _INCOMPLETE:
            raise ValueError("not whole")
        at += 8 + int.from_bytes(data[at + 4 : at + 8])


def _read_offset(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where what follows it begins."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | (byte & 0x7F)
    return value, at + 1
