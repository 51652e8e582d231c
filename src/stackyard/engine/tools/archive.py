"""Taking one program out of an archive that no one here made: zip, or tar with gzip."""

from __future__ import annotations

import contextlib
import functools
import gzip
import stat
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

from stackyard.engine.tools.methods import ToolReleaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["ARCHIVE_ENDINGS", "extract_program"]

ARCHIVE_ENDINGS = (".zip", ".tar.gz")

_CHUNK_BYTES = 1024 * 1024
# OpenTofu is about 120 MB; an archive that unpacks to many times that is not it.
_LARGEST_PROGRAM_BYTES = 1024 * 1024 * 1024
# The zip module raises the last two for encrypted entries and unknown compressions.
_DAMAGED = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: str
    size: int
    is_file: bool
    open: Callable[[], IO[bytes]]


def extract_program(archive: Path, program: str, target: Path) -> Iterator[tuple[int, int]]:
    """Write a program of an archive to a file, yielding how many bytes of how many are done.

    No other entry is written, but each must have a decent name: an archive with one that would leave the
    folder is refused as a whole.

    Raises:
        ToolReleaseError: The archive is damaged, has no such program, or would write elsewhere.
    """
    try:
        with _open_zip(archive) if archive.name.endswith(".zip") else _open_tar(archive) as entries:
            entry = _check_entry(archive.name, entries, program)
            with entry.open() as source, target.open("xb") as sink:
                done = 0
                while chunk := source.read(_CHUNK_BYTES):
                    done += sink.write(chunk)
                    yield done, entry.size
    except _DAMAGED as err:
        raise ToolReleaseError(f"{archive.name} is not a usable archive: {err}.") from err


@contextlib.contextmanager
def _open_zip(archive: Path) -> Iterator[list[_Entry]]:
    with zipfile.ZipFile(archive) as opened:
        yield [
            _Entry(
                name=info.filename,
                size=info.file_size,
                is_file=not stat.S_ISLNK(info.external_attr >> 16),
                open=functools.partial(opened.open, info),
            )
            for info in opened.infolist()
        ]


@contextlib.contextmanager
def _open_tar(archive: Path) -> Iterator[list[_Entry]]:
    with gzip.open(archive) as stream, tarfile.open(fileobj=stream) as opened:
        members = opened.getmembers()
        # The sum of the content is at the very end, behind that of the last entry.
        while stream.read(_CHUNK_BYTES):
            pass
        yield [
            _Entry(
                name=info.name,
                size=info.size,
                is_file=info.isreg(),
                open=functools.partial(tarfile.ExFileObject, opened, info),
            )
            for info in members
        ]


def _check_entry(archive: str, entries: list[_Entry], program: str) -> _Entry:
    for entry in entries:
        path = PurePosixPath(entry.name)
        if path.is_absolute() or ".." in path.parts or "\\" in entry.name:
            raise ToolReleaseError(f"{archive} has an entry that leads out of its folder: {entry.name!r}.")
    # Some projects put everything into one folder with the name of the archive.
    folder = next(
        (archive.removesuffix(ending) for ending in ARCHIVE_ENDINGS if archive.endswith(ending)), ""
    )
    found = [entry for entry in entries if entry.name in (program, f"{folder}/{program}")]
    if len(found) != 1 or not found[0].is_file:
        raise ToolReleaseError(f"{archive} does not have exactly one program `{program}`.")
    if found[0].size > _LARGEST_PROGRAM_BYTES:
        raise ToolReleaseError(
            f"The `{program}` in {archive} is {found[0].size} bytes, which cannot be right."
        )
    return found[0]
