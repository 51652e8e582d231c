"""Taking one program out of a zip archive that no one here made."""

from __future__ import annotations

import stat
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from stackyard.engine.tools.methods import ToolReleaseError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["extract_program"]

_CHUNK_BYTES = 1024 * 1024
# OpenTofu is about 120 MB; an archive that unpacks to many times that is not it.
_LARGEST_PROGRAM_BYTES = 1024 * 1024 * 1024


def extract_program(archive: Path, program: str, target: Path) -> Iterator[tuple[int, int]]:
    """Write a program of an archive to a file, yielding how many bytes of how many are done.

    No other entry is written, but each must have a decent name: an archive with one that would leave the
    folder is refused as a whole.

    Raises:
        ToolReleaseError: The archive is damaged, has no such program, or would write elsewhere.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entry = _check_entry(opened, program)
            with opened.open(entry) as source, target.open("xb") as sink:
                done = 0
                while chunk := source.read(_CHUNK_BYTES):
                    done += sink.write(chunk)
                    yield done, entry.file_size
    # The zip module raises the last two for encrypted entries and unknown compressions.
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as err:
        raise ToolReleaseError(f"{archive.name} is not a usable zip archive: {err}.") from err


def _check_entry(opened: zipfile.ZipFile, program: str) -> zipfile.ZipInfo:
    name = PurePosixPath(opened.filename or "").name
    for entry in opened.infolist():
        path = PurePosixPath(entry.filename)
        if path.is_absolute() or ".." in path.parts or "\\" in entry.filename:
            raise ToolReleaseError(f"{name} has an entry that leads out of its folder: {entry.filename!r}.")
    found = [entry for entry in opened.infolist() if entry.filename == program]
    if len(found) != 1 or stat.S_ISLNK(found[0].external_attr >> 16):
        raise ToolReleaseError(f"{name} does not have exactly one program `{program}`.")
    if found[0].file_size > _LARGEST_PROGRAM_BYTES:
        raise ToolReleaseError(
            f"The `{program}` in {name} is {found[0].file_size} bytes, which cannot be right."
        )
    return found[0]
