"""Reading and writing whole files: clear errors, atomic and durable writes, nothing half-written.

A path that is a symbolic link stays one: what it points to is read and replaced, as with an editor. A writer
that is killed leaves at most a hidden file of its own beside the real one, which nothing ever reads.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.errors import FileError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["hold_folder", "make_file", "read_text", "replace_file", "sync_folder"]

# Owner only: state, tokens and plans pass through here, and nothing we write needs other readers.
PRIVATE = 0o600
# How much of a file's name its temporary one shows: a name may have 255 bytes in all, and four a character.
_SHOWN_CHARACTERS = 40


def read_text(path: Path) -> str:
    """Return a file's text, which must be UTF-8; a byte order mark is not part of it.

    Raises:
        FileError: The file is missing, unreadable, a folder, or not UTF-8 (with line and column at fault).
    """
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "read", path) from err
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as err:
        # All before the fault is UTF-8, so that its characters can be counted as an editor does.
        before = data[: err.start].decode().removeprefix("\ufeff")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
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
        target = _behind_links(path)
        # Opened first: a folder that cannot be made durable is refused while nothing has changed.
        with _opened(target.parent) as folder:
            descriptor, name = tempfile.mkstemp(
                dir=target.parent, prefix=f".{target.name[:_SHOWN_CHARACTERS]}."
            )
            try:
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fchmod(stream.fileno(), mode)
                    os.fsync(stream.fileno())
                os.replace(name, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise
            _sync(folder)
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "write", path) from err


def make_file(path: Path, data: bytes) -> None:
    """Write a private file that is not there yet, whole; of two that are written at once, one stays.

    Raises:
        FileError: The folder cannot be written or the disk is full.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_SHOWN_CHARACTERS]}.")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(name, path)
            sync_folder(path.parent)
        finally:
            os.unlink(name)
    except OSError as err:
        raise FileError.from_os_error(err, "make", path) from err


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Let one process and thread at a time read, change and write what is in a folder.

    The lock is on the folder itself, so that nothing is made for it and a process that is killed lets go. It
    is for short changes: whoever comes meanwhile waits. It does not keep others from reading or replacing.

    Raises:
        FileError: The folder cannot be opened or locked.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as err:
        raise FileError.from_os_error(err, "use the folder", folder) from err
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as err:
            raise FileError.from_os_error(err, "lock the folder", folder) from err
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename inside a folder durable.

    Raises:
        OSError: The folder cannot be opened or written; only the caller can say what that means for the user.
    """
    with _opened(folder) as descriptor:
        _sync(descriptor)


def _behind_links(path: Path) -> Path:
    """Return where a path leads: renaming over a link would cut it off from the file that its user keeps."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return target


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as err:
        # Some network and FUSE file systems cannot sync a folder and say so; there is nothing more to do.
        if err.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
