"""The root directories of sandboxed guests, and the copies of them that snapshots keep.

What is in them was written by the guest. Nothing here follows a link in them: they are copied in a sandbox
and removed by a walk that stays inside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from pvelab.runtime.own_folder import OwnFolder
from pvelab.world.guests.folders import GuestFolders
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from pvelab.machines.bubblewrap import Bubblewrap
    from pvelab.world.store import Store

__all__ = ["COLLECTION", "Roots"]

COLLECTION = "guest_roots"
_TOP_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TOP_FOLDERS = ("dev", "etc", "proc", "run", "tmp", "usr", "var")
_SHIM_NAME = "shim"
_SHIM = """#!/usr/bin/python3 -IS
import sys
sys.path.insert(0, "/run/lab/lib")
from guest.shims import main
main()
"""


class Roots:
    """Makes, copies and removes root directories.

    Args:
        store: Says which are in use.
        folder: Where they are; a folder of their own that goes with the lab if None.
    """

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._place = OwnFolder(folder, "stackyard-guests-", _remove)
        self._folders = GuestFolders(store, COLLECTION, self._place)

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self._place.path

    def of(self, vmid: int, bubblewrap: Bubblewrap) -> Path:
        """Return the folder of a guest, made if it has none: `root` and `local` are in it.

        Raises:
            FileError: It cannot be created.
        """
        path = self._folders.of(vmid)
        if path is None:
            path = self._make(bubblewrap)
            self._folders.give(vmid, path)
        return path

    def find(self, vmid: int) -> Path | None:
        """Return the root directory of a guest, None if it has none yet."""
        path = self._folders.of(vmid)
        return None if path is None else path / "root"

    def shim(self) -> Path:
        """Return the program that represents all shims."""
        path = self._place.path / _SHIM_NAME
        if not path.exists():
            scratch = path.with_suffix(".new")
            scratch.write_text(_SHIM)
            scratch.chmod(0o755)
            scratch.replace(path)
        return path

    async def copy(self, source: int, target: int, snapshot: str | None, bubblewrap: Bubblewrap) -> None:
        """Give a guest a copy of another one's directory, or of a snapshot of it; nothing if it has none."""
        copied = await self._copy(self._folders.of(source, snapshot), bubblewrap)
        if copied is not None:
            self._folders.give(target, copied)

    async def remember(self, vmid: int, snapshot: str, bubblewrap: Bubblewrap) -> None:
        """Keep a copy of a guest's directory for a snapshot."""
        self._folders.keep(vmid, snapshot, await self._copy(self._folders.of(vmid), bubblewrap))

    async def go_back(self, vmid: int, snapshot: str, bubblewrap: Bubblewrap) -> None:
        """Give a guest a copy of what a snapshot keeps; a fresh one if it had nothing by then."""
        self._folders.give(vmid, await self._copy(self._folders.of(vmid, snapshot), bubblewrap))

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the directory of a guest and of all its snapshots, or that of one snapshot."""
        self._folders.forget(vmid, snapshot)

    def tidy(self) -> None:
        """Remove what no document names: the rest of what a killed lab was doing."""
        self._folders.tidy((_SHIM_NAME,))

    def close(self) -> None:
        """Remove everything, unless it is to outlive the lab."""
        self._place.close()

    def _make(self, bubblewrap: Bubblewrap) -> Path:
        path = self._folders.new()
        owner = bubblewrap.first_number
        try:
            root, local = path / "root", path / "local"
            for folder in (root, local, *(root / name for name in _TOP_FOLDERS)):
                folder.mkdir(mode=0o755)
            for name in _TOP_LINKS:
                if Path("/", name).is_symlink():
                    (root / name).symlink_to(f"usr/{name}")
            if owner is not None:
                for made in (root, local, *root.iterdir()):
                    os.chown(made, owner, owner, follow_symlinks=False)
        except OSError as err:
            raise FileError.from_os_error(err, "make the folder", path) from err
        return path

    async def _copy(self, source: Path | None, bubblewrap: Bubblewrap) -> Path | None:
        if source is None:
            return None
        target = self._make(bubblewrap)
        for part in ("root", "local"):
            await bubblewrap.copy(source / part, target / part)
        return target


def _remove(path: Path) -> None:
    """Remove a file or folder; folders that no one may enter are opened first, links are not followed."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    with contextlib.suppress(OSError):
        for folder, names, _files, descriptor in os.fwalk(path, follow_symlinks=False):
            del folder
            for name in names:
                # Not through a link: the walk has just seen that this is a folder, and the guest has ended.
                with contextlib.suppress(OSError):
                    if not stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                        os.chmod(name, 0o700, dir_fd=descriptor)
    shutil.rmtree(path, ignore_errors=True)
