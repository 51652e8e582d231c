"""SFTP on a node: every operation on the lab's own files, none on the machine's."""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import stat
from typing import TYPE_CHECKING, Any, cast

import asyncssh

from pvelab.ssh.files import FileEntry, OpenFile, normal_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from pvelab.ssh.files import NodeFiles

__all__ = ["NodeSftp"]

_ERRORS: dict[int, Callable[[str], asyncssh.SFTPError]] = {
    errno.ENOENT: asyncssh.SFTPNoSuchFile,
    errno.EACCES: asyncssh.SFTPPermissionDenied,
    errno.EPERM: asyncssh.SFTPPermissionDenied,
}


class NodeSftp(asyncssh.SFTPServer):
    """The SFTP subsystem of a node.

    Args:
        channel: The channel that it answers on.
        files: The files of the node.
        note: Told of each file that is opened, removed or renamed, and how.
        writable: Whether the user may change anything.
    """

    def __init__(
        self,
        channel: asyncssh.SSHServerChannel[bytes],
        files: NodeFiles,
        note: Callable[[str, str], None],
        *,
        writable: bool,
    ) -> None:
        super().__init__(channel)
        self._files = files
        self._note = note
        self._writable = writable

    # --- Looking

    def stat(self, path: bytes) -> asyncssh.SFTPAttrs:
        """Return the attributes of a file."""
        with _refusals():
            return _attributes(self._files.require(_text(path)))

    def lstat(self, path: bytes) -> asyncssh.SFTPAttrs:
        """Return the attributes of a file; there are no links."""
        return self.stat(path)

    def fstat(self, file_obj: object) -> asyncssh.SFTPAttrs:
        """Return the attributes of an open file, what was written so far included."""
        opened = _cast_file(file_obj)
        return asyncssh.SFTPAttrs(
            size=opened.size, permissions=stat.S_IFREG | opened.mode, uid=0, gid=0, atime=0, mtime=0
        )

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        """Yield what is in a folder."""
        with _refusals():
            entries = self._files.entries(_text(path))
        folder = asyncssh.SFTPAttrs(permissions=stat.S_IFDIR | 0o755, uid=0, gid=0, size=0)
        for name in (b".", b".."):
            yield asyncssh.SFTPName(name, attrs=folder)
        for entry in entries:
            yield asyncssh.SFTPName(posixpath.basename(entry.path).encode(), attrs=_attributes(entry))

    def realpath(self, path: bytes) -> bytes:
        """Return a path from the root, without dots."""
        return normal_path(_text(path)).encode()

    def readlink(self, path: bytes) -> bytes:
        """Refuse: there are no links."""
        raise asyncssh.SFTPFailure("Invalid argument")

    def format_user(self, uid: int | None) -> str:
        """Return the owner of everything."""
        return "root"

    def format_group(self, gid: int | None) -> str:
        """Return the group of everything."""
        return "root"

    # --- Reading and writing

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        """Open a file."""
        name, write = _text(path), bool(pflags & (asyncssh.FXF_WRITE | asyncssh.FXF_APPEND))
        with _refusals():
            found = self._files.find(name)
            if write:
                self._require_writable(name)
                if found is None and not pflags & asyncssh.FXF_CREAT:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), name)
                if found is not None and pflags & asyncssh.FXF_EXCL:
                    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            keep = not pflags & asyncssh.FXF_TRUNC
            opened = self._files.open(name, write=write, keep=keep, mode=attrs.permissions)
        opened.appends = bool(pflags & asyncssh.FXF_APPEND)
        self._note("write" if write else "read", opened.path)
        return opened

    def open56(self, path: bytes, desired_access: int, flags: int, attrs: asyncssh.SFTPAttrs) -> object:
        """Refuse: that is another version of the protocol than the one that was agreed upon."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def read(self, file_obj: object, offset: int, size: int) -> bytes:
        """Read from an open file."""
        with _refusals():
            return _cast_file(file_obj).read_at(offset, size)

    def write(self, file_obj: object, offset: int, data: bytes) -> int:
        """Write to an open file."""
        with _refusals():
            _cast_file(file_obj).write_at(offset, data)
        return len(data)

    async def close(self, file_obj: object) -> None:
        """Close a file; what was written is content of its storage from now on."""
        with _refusals():
            await _cast_file(file_obj).close()

    def exit(self) -> None:
        """End the session well; files that the client did not close are closed, as half as they are."""
        self.channel.exit(0)

    # --- Changing

    async def fsetstat(self, file_obj: object, attrs: asyncssh.SFTPAttrs) -> None:
        """Change the size or the mode of an open file."""
        opened = _cast_file(file_obj)
        with _refusals():
            if attrs.size is not None:
                opened.truncate(attrs.size)
            if attrs.permissions is not None:
                self._require_writable(opened.path)
                opened.mode = stat.S_IMODE(attrs.permissions)

    async def setstat(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        """Change the size or the mode of a file; its owner and its times are the lab's to say."""
        name = _text(path)
        with _refusals():
            self._files.require(name)
            self._require_writable(name)
            if attrs.size is not None:
                opened = self._files.open(name, write=True)
                opened.truncate(attrs.size)
                await opened.close()
            if attrs.permissions is not None:
                self._files.set_mode(name, stat.S_IMODE(attrs.permissions))

    async def lsetstat(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        """Change the size or the mode of a file; there are no links."""
        await self.setstat(path, attrs)

    def remove(self, path: bytes) -> None:
        """Remove a file."""
        with _refusals():
            self._require_writable(_text(path))
            self._files.remove(_text(path))
        self._note("remove", normal_path(_text(path)))

    def rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Rename a file, never over another one."""
        self._rename(_text(oldpath), _text(newpath), replace=False)

    def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        """Rename a file, in place of another one if there is one."""
        self._rename(_text(oldpath), _text(newpath), replace=True)

    def mkdir(self, path: bytes, attrs: asyncssh.SFTPAttrs) -> None:
        """Refuse, as one that is there or one that cannot be."""
        with _refusals():
            self._files.make_folder(_text(path))

    def rmdir(self, path: bytes) -> None:
        """Refuse: the folders of storages stay."""
        raise asyncssh.SFTPPermissionDenied("Operation not permitted")

    def link(self, oldpath: bytes, newpath: bytes) -> None:
        """Refuse: there are no links."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def symlink(self, oldpath: bytes, newpath: bytes) -> None:
        """Refuse: there are no links."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def lock(self, file_obj: object, offset: int, length: int, flags: int) -> None:
        """Refuse: there are no locks."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def unlock(self, file_obj: object, offset: int, length: int) -> None:
        """Refuse: there are no locks."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def statvfs(self, path: bytes) -> asyncssh.SFTPVFSAttrs:
        """Refuse: ask the API how full a storage is."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def fstatvfs(self, file_obj: object) -> asyncssh.SFTPVFSAttrs:
        """Refuse: ask the API how full a storage is."""
        raise asyncssh.SFTPOpUnsupported("Operation not supported")

    def fsync(self, file_obj: object) -> None:
        """Do nothing: a file is kept when it is closed."""

    def map_path(self, path: bytes) -> bytes:
        """Refuse: no path of the lab is one of the machine."""
        raise asyncssh.SFTPPermissionDenied("Operation not permitted")

    def reverse_map_path(self, path: bytes) -> bytes:
        """Refuse: no path of the machine is one of the lab."""
        raise asyncssh.SFTPPermissionDenied("Operation not permitted")

    def _rename(self, old: str, new: str, *, replace: bool) -> None:
        with _refusals():
            self._require_writable(old)
            self._files.rename(old, new, replace=replace)
        self._note("rename", normal_path(new))

    def _require_writable(self, path: str) -> None:
        if not self._writable:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _cast_file(file_obj: object) -> OpenFile:
    return cast("OpenFile", file_obj)


def _attributes(entry: FileEntry) -> asyncssh.SFTPAttrs:
    kind = stat.S_IFDIR if entry.is_folder else stat.S_IFREG
    facts: dict[str, Any] = {"uid": 0, "gid": 0, "atime": entry.mtime, "mtime": entry.mtime}
    return asyncssh.SFTPAttrs(size=entry.size, permissions=kind | entry.mode, **facts)


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn what the file system says into what the protocol says."""
    try:
        yield
    except OSError as err:
        text = err.strerror or str(err)
        raise _ERRORS.get(err.errno or 0, asyncssh.SFTPFailure)(text) from err
