"""Files that programs of a nested node put under /var/lib/vz are in its storage `local`, as on a real node.

Clients upload snippets and images over SSH, into the folders of that storage. Before the node answers a call
it looks into these folders and takes over what is new, changed or gone. What is there was written by the
guest: no link is followed, and only plain files count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.contents import put_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pvelab.world.world import World

__all__ = ["StorageFolders", "open_folder"]

_STORAGE = "local"
_FOLDERS = {
    "var/lib/vz/snippets": "snippets",
    "var/lib/vz/template/iso": "iso",
    "var/lib/vz/template/cache": "vztmpl",
    "var/lib/vz/import": "import",
}
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Seen = tuple[int, int, int]


class StorageFolders:
    """Takes over the files of one nested node.

    Args:
        world: The lab of the node.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._seen: dict[str, Seen] = {}
        self._lock = asyncio.Lock()

    async def take_in(self) -> None:
        """Make the storage hold what is in its folders."""
        uplink = self._world.uplink
        root = None if uplink is None else uplink.world.machines.root_of(uplink.vmid)
        if root is None:
            return
        async with self._lock:
            present: set[str] = set()
            for folder, content in _FOLDERS.items():
                with open_folder(root, folder) as descriptor:
                    if descriptor is None:
                        continue
                    for name, seen in _files(descriptor):
                        volid = f"{_STORAGE}:{content}/{name}"
                        present.add(volid)
                        if self._seen.get(volid) != seen:
                            await self._take(descriptor, name, volid)
                            self._seen[volid] = seen
            for volid in [volid for volid in self._seen if volid not in present]:
                del self._seen[volid]
                with self._world.store.transaction():
                    self._world.volumes.free(volid, self._world.cluster.local())

    async def _take(self, folder: int, name: str, volid: str) -> None:
        blobs = self._world.blobs
        with blobs.scratch() as scratch, contextlib.suppress(OSError, PveError):
            # A file that went meanwhile, or that the storage would not list, is none of it.
            await asyncio.to_thread(_copy, folder, name, scratch)
            blob = await blobs.adopt(scratch)
            try:
                with self._world.store.transaction():
                    put_file(self._world, volid, self._world.cluster.local(), blob)
            finally:
                blobs.release(blob)


@contextlib.contextmanager
def open_folder(root: Path, folder: str) -> Iterator[int | None]:
    """Give a folder below a root, opened step by step so that no link leads elsewhere; None if absent."""
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.open(root, _OPEN_FOLDER)
            stack.callback(os.close, descriptor)
            for part in folder.split("/"):
                descriptor = os.open(part, _OPEN_FOLDER, dir_fd=descriptor)
                stack.callback(os.close, descriptor)
        except OSError:
            yield None
            return
        yield descriptor


def _files(folder: int) -> list[tuple[str, Seen]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found.append((entry.name, (status.st_ino, status.st_size, status.st_mtime_ns)))
    return sorted(found)


def _copy(folder: int, name: str, target: Path) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as source, target.open("wb") as stream:
        shutil.copyfileobj(source, stream)
