"""Reading and writing whole files: clear errors, atomic and durable writes, nothing half-written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

from stackyard.errors import FileError, Location

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_text", "replace_file", "sync_folder"]

# Owner only: state, tokens and plans pass through here, and nothing we write needs other readers.
PRIVATE = 0o600


def read_text(path: Path) -> str:
    """Return a file's text, which must be UTF-8.

    Raises:
        FileError: The file is missing, unreadable, a folder, or not UTF-8 (with the line at fault).
    """
    try:
        data = path.read_bytes()
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        return data.decode()
    except UnicodeDecodeError as err:
        before = data[: err.start]
        line, column = before.count(b"\n") + 1, err.start - (before.rfind(b"\n") + 1) + 1
        raise FileError(
            f"{path} is not UTF-8 text: byte 0x{data[err.start]:02x} at line {line}, column {column}.",
            where=Location(str(path), line, column),
            remedy="Save the file as UTF-8.",
        ) from err


def replace_file(path: Path, data: bytes, *, mode: int = PRIVATE) -> None:
    """Write a file so that it is either the old one or the new one, even after a power cut.

    Raises:
        FileError: The folder cannot be written or the disk is full; the old file is untouched.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        sync_folder(path.parent)
    except OSError as err:
        raise FileError.from_os_error(err, "write", path) from err


def sync_folder(folder: Path) -> None:
    """Make a rename inside a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
