"""Reading and writing whole files: clear errors, atomic and durable writes, nothing half-written.

A path that is a symbolic link of the user's own, or of root, stays one: what it points to is read and
replaced, as with an editor. A link of anyone else is never written through, wherever in the path it is: in a
folder that others can write to, such as /tmp, it would choose which of our files is replaced. A writer that
is killed leaves at most a hidden file of its own beside the real one, which nothing ever reads.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from typing import TYPE_CHECKING, BinaryIO

from stackyard.base.errors import FileError, Location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "ForeignLinkError",
    "make_file",
    "open_file",
    "read_text",
    "replace_file",
    "sync_folder",
]

# Owner only: state, tokens and plans pass through here, and nothing we write needs other readers.
PRIVATE = 0o600
# How much of a file's name its temporary one shows: a name may have 255 bytes in all, and four a character.
_SHOWN_CHARACTERS = 40
# As many links in one path as the system itself follows.
_MOST_LINKS = 40
_ROOT_USER = 0
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class ForeignLinkError(FileError):
    """A path to write to leads through a link of another user, or a file to append to is another user's."""

    code = "E-FILE-FOREIGN-LINK"
    summary = "A path leads through a symbolic link or to a file of another user"
    default_remedy = "Write to a folder of your own, or remove what is there if it should not be."


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
        ForeignLinkError: The path leads through a link of another user; nothing was written.
        FileError: The folder cannot be written or the disk is full; the old file is untouched.
    """
    try:
        # Opened first: a folder that cannot be made durable is refused while nothing has changed.
        with _open_folder_of(path) as (folder, target):
            with _write_temporary(folder, target, data, mode) as name:
                os.replace(name, target, src_dir_fd=folder, dst_dir_fd=folder)
            _sync(folder)
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "write", path) from err


def make_file(path: Path, data: bytes) -> bool:
    """Write a private file that is not there yet, whole; of two that are written at once, one stays.

    Returns whether it is this one; whoever needs no certain content goes on with what is there.

    Raises:
        ForeignLinkError: The path leads through a link of another user; nothing was written.
        FileError: The folder cannot be written or the disk is full.
    """
    try:
        with _open_folder_of(path) as (folder, target):
            with _write_temporary(folder, target, data) as name:
                try:
                    os.link(name, target, src_dir_fd=folder, dst_dir_fd=folder)
                    is_made = True
                except FileExistsError:
                    is_made = False
            _sync(folder)
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "make", path) from err
    return is_made


def open_file(path: Path, *, mode: int = PRIVATE, is_appended: bool = False) -> BinaryIO:
    """Open a file to write to piece by piece, such as a log or a download; it is emptied unless appended to.

    Raises:
        ForeignLinkError: The path leads through a link of another user, or the file is another user's.
        FileError: It cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with _open_folder_of(path) as (folder, target):
            descriptor = os.open(target, flags, mode, dir_fd=folder)
        try:
            status = os.fstat(descriptor)
            _require_own(path, path.name, status.st_uid)
            os.set_blocking(descriptor, True)
            if not is_appended and stat.S_ISREG(status.st_mode):
                os.ftruncate(descriptor, 0)
            return os.fdopen(descriptor, "ab")
        except BaseException:
            os.close(descriptor)
            raise
    except (OSError, ValueError) as err:
        raise FileError.from_os_error(err, "write", path) from err


@contextlib.contextmanager
def _write_temporary(folder: int, target: str, data: bytes, mode: int = PRIVATE) -> Iterator[str]:
    """Write a file under a name of its own, which is gone when the block ends."""
    name = f".{target[:_SHOWN_CHARACTERS]}.{os.urandom(8).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, PRIVATE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        yield name
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


def sync_folder(folder: Path) -> None:
    """Make a rename inside a folder durable.

    Raises:
        OSError: The folder cannot be opened or written; only the caller can say what that means for the user.
    """
    with _open_folder(folder) as descriptor:
        _sync(descriptor)


@contextlib.contextmanager
def _open_folder_of(path: Path) -> Iterator[tuple[int, str]]:
    """Open the folder that a path leads to; give it, and the name of the file in it."""
    with contextlib.ExitStack() as opened:
        step, name = _walk(path, opened)
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=step)
        opened.callback(os.close, folder)
        yield folder, name


def _walk(path: Path, opened: contextlib.ExitStack) -> tuple[int, str]:
    """Follow a path as the system does, name by name, and return where it ends: a folder, and a name in it.

    Each folder is held open, so that anyone who exchanges a part of the path meanwhile changes nothing.
    """
    text, links = os.fspath(path), 0
    folder, names = _open_step("/" if text.startswith("/") else ".", None, opened), text.split("/")
    while True:
        name = names.pop(0)
        if not names and name in ("", ".", ".."):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        try:
            found = _open_step(name or ".", folder, opened)
        except FileNotFoundError:
            if names:
                raise
            return folder, name
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            _require_own(path, name, status.st_uid)
            to = os.readlink("", dir_fd=found)
            folder = _open_step("/", None, opened) if to.startswith("/") else folder
            names = [*to.split("/"), *names]
        elif not names:
            return folder, name
        else:
            folder = found


def _open_step(name: str, folder: int | None, opened: contextlib.ExitStack) -> int:
    descriptor = os.open(name, _STEP, dir_fd=folder)
    opened.callback(os.close, descriptor)
    return descriptor


def _require_own(path: Path, name: str, owner: int) -> None:
    if owner in (os.geteuid(), _ROOT_USER):
        return
    try:
        who = pwd.getpwuid(owner).pw_name
    except KeyError:
        who = f"user {owner}"
    raise ForeignLinkError(f"Cannot write {path}: '{name}' belongs to {who}.", where=Location(str(path)))


@contextlib.contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
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
