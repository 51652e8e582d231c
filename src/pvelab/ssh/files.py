"""The file system of a node as SSH shows it: the content of its storages and a few files of the system.

Nothing of it is a file of the machine: a path is looked up in the lab, and what is written at a path becomes
a volume of the storage that has its folder there. Errors are `OSError`, with the path as clients know it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import posixpath
import shutil
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.ssh.system_files import (
    UNITS,
    is_kept_file,
    read_system_file,
    remove_kept_file,
    system_files,
    write_system_file,
)
from pvelab.ssh.zeros import Zeros
from pvelab.world.storage.blobs import Blob
from pvelab.world.storage.contents import put_file
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_names import FILE_CONTENTS, file_folder, path_of, volume_at
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["FileEntry", "NodeFiles", "OpenFile", "normal_path"]

_FILE_MODE = 0o644
_FOLDER_MODE = 0o755
_HOME = "/root"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """A file or folder."""

    path: str
    is_folder: bool = False
    size: int = 0
    mode: int = _FILE_MODE
    mtime: int = 0


def normal_path(path: str) -> str:
    """Return a path from the root, without dots; one that begins nowhere begins in root's home."""
    return "/" + posixpath.normpath(posixpath.join(_HOME, path)).lstrip("/")


class NodeFiles:
    """The files of one node.

    Args:
        world: The lab.
        node: The node.
    """

    def __init__(self, world: World, node: str) -> None:
        self._world = world
        self._node = node

    def find(self, path: str) -> FileEntry | None:
        """Return what is at a path, or None."""
        path = normal_path(path)
        text = read_system_file(self._world, self._node, path)
        if text is not None:
            return FileEntry(path=path, size=len(text.encode()), mtime=int(self._world.clock.now()))
        volume = self.volume(path)
        if volume is not None:
            return _file_entry(path, volume)
        if path in self._folders():
            return FileEntry(path=path, is_folder=True, mode=_FOLDER_MODE)
        return None

    def require(self, path: str) -> FileEntry:
        """Return what is at a path.

        Raises:
            FileNotFoundError: Nothing is.
        """
        found = self.find(path)
        if found is None:
            raise _error(errno.ENOENT, path)
        return found

    def entries(self, path: str) -> list[FileEntry]:
        """Return what is in a folder, by name.

        Raises:
            FileNotFoundError: There is no such folder.
            NotADirectoryError: It is a file.
        """
        folder = self.require(path)
        if not folder.is_folder:
            raise _error(errno.ENOTDIR, path)
        found = {
            inner: FileEntry(path=inner, is_folder=True, mode=_FOLDER_MODE)
            for inner in self._folders()
            if inner != "/" and posixpath.dirname(inner) == folder.path
        }
        for storage, config in self._storages().items():
            for volume in self._world.storages.volumes(storage, self._node):
                place = path_of(config, str(volume["volid"]))
                if posixpath.dirname(place) == folder.path:
                    found[place] = _file_entry(place, volume)
        for place in system_files(self._world, self._node):
            if posixpath.dirname(place) == folder.path:
                found[place] = self.require(place)
        return [found[name] for name in sorted(found)]

    def open(self, path: str, *, write: bool = False, keep: bool = True, mode: int | None = None) -> OpenFile:
        """Open a file.

        Args:
            path: Where it is.
            write: Whether to write to it; what was written is there once it is closed.
            keep: Whether what it holds stays.
            mode: Its permission bits if it is new.

        Raises:
            OSError: There is no such file, or there can be none.
        """
        path = normal_path(path)
        found = self.find(path)
        if found is not None and found.is_folder:
            raise _error(errno.EISDIR, path)
        if found is None and not write:
            raise _error(errno.ENOENT, path)
        if write and found is None:
            self._require_place(path)
        chosen = found.mode if found is not None else (_FILE_MODE if mode is None else mode & 0o7777)
        return OpenFile(self, path, write=write, keep=keep and found is not None, mode=chosen)

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            OSError: It is not there, a folder, or one that cannot be removed.
        """
        found = self.require(path)
        volid = volume_at(self._storages(), found.path)
        if found.is_folder:
            raise _error(errno.EISDIR, path)
        if volid is None and not is_kept_file(found.path):
            raise _error(errno.EPERM, path)
        with self._world.store.transaction():
            if volid is None:
                remove_kept_file(self._world, self._node, found.path)
            else:
                self._world.volumes.free(volid, self._node)

    def make_folder(self, path: str) -> None:
        """Refuse a folder: those that Proxmox uses are there, and the lab has no others.

        Raises:
            FileExistsError: It is there.
            PermissionError: It is not.
        """
        raise _error(errno.EPERM if self.find(path) is None else errno.EEXIST, path)

    def set_mode(self, path: str, mode: int) -> None:
        """Change the permission bits of a file.

        Raises:
            OSError: It is not there, or they cannot be changed.
        """
        found = self.require(path)
        volid = volume_at(self._storages(), found.path)
        volume = None if volid is None else self._world.volumes.find(volid, self._node)
        if volume is None:
            raise _error(errno.EPERM, path)
        with self._world.store.transaction():
            key = f"{volume['scope']}|{volid}"
            self._world.store.put("volumes", key, {**volume, "mode": mode & 0o7777})

    def rename(self, old: str, new: str, *, replace: bool = True) -> None:
        """Give a file another path, on the same storage or another one.

        Raises:
            OSError: It is not there, or cannot be there.
        """
        source, target = self.require(old), normal_path(new)
        if is_kept_file(source.path) and is_kept_file(target):
            text = read_system_file(self._world, self._node, source.path) or ""
            with self._world.store.transaction():
                write_system_file(self._world, self._node, target, text)
                remove_kept_file(self._world, self._node, source.path)
            return
        volume = self.volume(source.path)
        self._require_place(target)
        volid = volume_at(self._storages(), target)
        if volume is None or volid is None or "sha256" not in volume:
            raise _error(errno.EPERM, old)
        if self.find(target) is not None and not replace:
            raise _error(errno.EEXIST, new)
        blob = Blob(sha256=str(volume["sha256"]), size=int(volume["size"]))
        with _refusals(target), self._world.store.transaction():
            put_file(self._world, volid, self._node, blob, mode=volume.get("mode"))
            self._world.volumes.free(str(volume["volid"]), self._node)

    def content(self, path: str) -> IO[bytes]:
        """Open the bytes of a file that is there; one without bytes of its own reads as zeros."""
        text = read_system_file(self._world, self._node, path)
        if text is not None:
            return io.BytesIO(text.encode())
        volume = self.volume(path)
        if volume is not None and "sha256" in volume:
            return self._world.blobs.path(str(volume["sha256"])).open("rb")
        return io.BufferedReader(Zeros(0 if volume is None else int(volume["size"])))

    async def keep(self, path: str, written: Path, mode: int) -> None:
        """Make what was written to a scratch file the content of a file.

        Raises:
            OSError: The storage is full, or gone.
        """
        volid = volume_at(self._storages(), path)
        with _refusals(path):
            if volid is None:
                text = _text(written)
                with self._world.store.transaction():
                    write_system_file(self._world, self._node, path, text)
                return
            blob = await self._world.blobs.adopt(written)
            with self._world.store.transaction():
                put_file(self._world, volid, self._node, blob, mode=mode)

    def scratch(self) -> AbstractContextManager[Path]:
        """Return a new file to write to, which is gone at the end of the block."""
        return self._world.blobs.scratch()

    def _require_place(self, path: str) -> None:
        if posixpath.dirname(path) not in self._folders():
            raise _error(errno.ENOENT, path)
        if volume_at(self._storages(), path) is None and not is_kept_file(path):
            raise _error(errno.EPERM, path)

    def _storages(self) -> Mapping[str, Document]:
        """Return the file based storages that this node has mounted."""
        return {
            name: config
            for name, config in self._world.storages.all().items()
            if type_of(config).files
            and config.get("path")
            and not config.get("disable")
            and self._world.storages.is_on(config, self._node)
        }

    def volume(self, path: str) -> Document | None:
        """Return the volume whose file is at a path, or None."""
        storages = self._storages()
        volid = volume_at(storages, path)
        if volid is not None:
            return self._world.volumes.find(volid, self._node)
        for storage, config in storages.items():
            images = file_folder(config, "images")
            if path.startswith(f"{images}/"):
                return self._world.volumes.find(f"{storage}:{path.removeprefix(f'{images}/')}", self._node)
        return None

    def _folders(self) -> set[str]:
        places = {_HOME, UNITS, *map(posixpath.dirname, system_files(self._world, self._node))}
        for storage, config in self._storages().items():
            places |= {file_folder(config, content) for content in (*FILE_CONTENTS, "images")}
            for volume in self._world.storages.volumes(storage, self._node):
                if volume["content"] == "images":
                    places.add(posixpath.dirname(path_of(config, str(volume["volid"]))))
        found = set()
        for place in places:
            while place not in found:
                found.add(place)
                place = posixpath.dirname(place)
        return found


class OpenFile:
    """A file that was opened; made by `NodeFiles.open`."""

    def __init__(self, files: NodeFiles, path: str, *, write: bool, keep: bool, mode: int) -> None:
        self.path = path
        self.mode = mode
        self.appends = False
        self._files = files
        self._resources = contextlib.ExitStack()
        self._scratch: Path | None = None
        self._stream: IO[bytes]
        if not write:
            self._stream = self._resources.enter_context(files.content(path))
            return
        self._scratch = self._resources.enter_context(files.scratch())
        self._stream = self._resources.enter_context(self._scratch.open("r+b", buffering=0))
        if keep:
            with files.content(path) as before:
                shutil.copyfileobj(before, self._stream)

    @property
    def size(self) -> int:
        """How many bytes it has now."""
        return self._stream.seek(0, os.SEEK_END)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, or find data and holes, as the system does."""
        return self._stream.seek(offset, whence)

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from a place on, fewer at the end."""
        self._stream.seek(offset)
        return self._stream.read(size)

    def write_at(self, offset: int, data: bytes) -> None:
        """Write bytes at a place, or at the end if it `appends`.

        Raises:
            OSError: It was opened to read.
        """
        if self._scratch is None:
            raise _error(errno.EBADF, self.path)
        self._stream.seek(self.size if self.appends else offset)
        self._stream.write(data)

    def truncate(self, size: int) -> None:
        """Cut it off, or make it longer with zeros."""
        if self._scratch is None:
            raise _error(errno.EBADF, self.path)
        self._stream.truncate(size)

    def abandon(self) -> None:
        """Close it; what was written is lost."""
        self._resources.close()

    async def close(self) -> None:
        """Close it; what was written is there from now on.

        Raises:
            OSError: The storage is full, or gone.
        """
        with self._resources:
            if self._scratch is not None:
                self._stream.close()
                await self._files.keep(self.path, self._scratch, self.mode)


def _file_entry(path: str, volume: Document) -> FileEntry:
    return FileEntry(
        path=path,
        size=int(volume["size"]),
        mode=int(volume.get("mode", _FILE_MODE)),
        mtime=int(volume["ctime"]),
    )


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


@contextlib.contextmanager
def _refusals(path: str) -> Iterator[None]:
    """Turn what the lab refuses into what the system would say."""
    try:
        yield
    except PveError as err:
        full = "No space left on device" in err.text
        raise OSError(
            errno.ENOSPC if full else errno.EIO, err.text if not full else os.strerror(errno.ENOSPC), path
        ) from err
    except FileError as err:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path) from err
