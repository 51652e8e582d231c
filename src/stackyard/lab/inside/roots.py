"""The root directories of sandboxed guests, and the copies of them that snapshots keep.

A directory has a name of its own, which no other ever had; the document `guest_roots/<vmid>` says which one a
guest has (`id`) and which its snapshots have (`snapshots`). So a lab that was killed in the middle of
something finds either the old or the new one; what no document names is removed at the next start.

What is in them was written by the guest. Nothing here follows a link in them: they are copied in a sandbox
and removed by a walk that stays inside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.errors import FileError
from stackyard.lab.generate import new_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.lab.inside.bubblewrap import Bubblewrap
    from stackyard.lab.store import Store

__all__ = ["COLLECTION", "Roots"]

COLLECTION = "guest_roots"
_TOP_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_TOP_FOLDERS = ("dev", "etc", "proc", "run", "tmp", "usr", "var")
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
        self._store = store
        self._lasting = folder
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """Where they are."""
        return self._place()

    def of(self, vmid: int, bubblewrap: Bubblewrap) -> Path:
        """Return the folder of a guest, made anew if it has none: `root` and `local` are in it.

        Raises:
            FileError: It cannot be made.
        """
        record = self._record(vmid)
        path = self._place() / str(record.get("id", "none"))
        if "id" in record and path.is_dir():
            return path
        path = self._make(bubblewrap)
        self._change(vmid, id=path.name)
        return path

    def known(self, vmid: int) -> Path | None:
        """Return the root directory of a guest, None if it has none yet."""
        name = self._record(vmid).get("id")
        return None if name is None else self._place() / str(name) / "root"

    def shim(self) -> Path:
        """Return the program that stands for all shims."""
        path = self._place() / "shim"
        if not path.exists():
            scratch = path.with_suffix(".new")
            scratch.write_text(_SHIM)
            scratch.chmod(0o755)
            scratch.replace(path)
        return path

    async def copy(self, source: int, target: int, snapshot: str | None, bubblewrap: Bubblewrap) -> None:
        """Give a guest a copy of another one's directory, or of a snapshot of it; nothing if it has none."""
        record = self._record(source)
        name = record.get("id") if snapshot is None else record.get("snapshots", {}).get(snapshot)
        copied = await self._copy(name, bubblewrap)
        if copied is not None:
            self._drop(self._record(target).get("id"))
            self._change(target, id=copied)

    async def remember(self, vmid: int, snapshot: str, bubblewrap: Bubblewrap) -> None:
        """Keep a copy of a guest's directory for a snapshot."""
        copied = await self._copy(self._record(vmid).get("id"), bubblewrap)
        self._change(vmid, snapshots={**self._record(vmid).get("snapshots", {}), snapshot: copied})

    async def go_back(self, vmid: int, snapshot: str, bubblewrap: Bubblewrap) -> None:
        """Give a guest a copy of what a snapshot keeps; a fresh one if it had nothing by then."""
        kept = self._record(vmid).get("snapshots", {}).get(snapshot)
        copied = await self._copy(kept, bubblewrap)
        old = self._record(vmid).get("id")
        self._change(vmid, id=copied)
        self._drop(old)

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the directory of a guest and of all its snapshots, or that of one snapshot."""
        record = dict(self._record(vmid))
        kept = dict(record.get("snapshots", {}))
        if snapshot is not None:
            self._drop(kept.pop(snapshot, None))
            if record:
                self._change(vmid, snapshots=kept)
            return
        for name in (record.get("id"), *kept.values()):
            self._drop(name)
        if record:
            with self._store.transaction():
                self._store.delete(COLLECTION, str(vmid))

    def tidy(self) -> None:
        """Remove what no document names: the rest of what a killed lab was doing."""
        if self._lasting is None or not self._lasting.is_dir():
            return
        named = {"shim"}
        for record in self._store.items(COLLECTION).values():
            named |= {str(record.get("id")), *map(str, record.get("snapshots", {}).values())}
        for path in self._lasting.iterdir():
            if path.name not in named:
                _remove(path)

    def close(self) -> None:
        """Remove everything, unless it is to outlive the lab."""
        if self._folder is not None and self._lasting is None:
            _remove(self._folder)
            self._folder = None

    def _record(self, vmid: int) -> Any:
        return self._store.get(COLLECTION, str(vmid)) or {}

    def _change(self, vmid: int, **fields: Any) -> None:
        with self._store.transaction():
            self._store.put(COLLECTION, str(vmid), {**self._record(vmid), **fields})

    def _place(self) -> Path:
        if self._folder is None:
            if self._lasting is None:
                self._folder = Path(tempfile.mkdtemp(prefix="stackyard-guests-"))
            else:
                with _failing("make the folder", self._lasting):
                    self._lasting.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._folder = self._lasting
        return self._folder

    def _make(self, bubblewrap: Bubblewrap) -> Path:
        path = self._place() / new_uuid()
        owner = bubblewrap.first_number
        with _failing("make the folder", path):
            path.mkdir(mode=0o700)
            root, local = path / "root", path / "local"
            for folder in (root, local, *(root / name for name in _TOP_FOLDERS)):
                folder.mkdir(mode=0o755)
            for name in _TOP_LINKS:
                if Path("/", name).is_symlink():
                    (root / name).symlink_to(f"usr/{name}")
            if owner is not None:
                for made in (root, local, *root.iterdir()):
                    os.chown(made, owner, owner, follow_symlinks=False)
        return path

    async def _copy(self, name: str | None, bubblewrap: Bubblewrap) -> str | None:
        if name is None or not (self._place() / name).is_dir():
            return None
        target = self._make(bubblewrap)
        for part in ("root", "local"):
            await bubblewrap.copy(self._place() / name / part, target / part)
        return target.name

    def _drop(self, name: str | None) -> None:
        if name:
            _remove(self._place() / name)


def _remove(path: Path) -> None:
    """Remove a folder; folders in it that nobody may enter are opened first, links are not followed."""
    with contextlib.suppress(OSError):
        for folder, names, _files, descriptor in os.fwalk(path, follow_symlinks=False):
            del folder
            for name in names:
                # Not through a link: the walk has just seen that this is a folder, and the guest has ended.
                with contextlib.suppress(OSError):
                    if not stat.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode):
                        os.chmod(name, 0o700, dir_fd=descriptor)
    shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _failing(verb: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as err:
        raise FileError.from_os_error(err, verb, path) from err
