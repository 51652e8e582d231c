"""The folders of nested labs, and the copies of them that snapshots and clones of their guests have.

A folder has a name of its own, which no other ever had; the document `nested_states/<vmid>` says which one a
guest has (`id`) and which its snapshots have (`snapshots`). So a lab that was killed in the middle of
something finds either the old or the new one; what no document names is removed at the next start.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stackyard.errors import FileError
from stackyard.lab.generate import new_uuid

if TYPE_CHECKING:
    from stackyard.lab.store import Store

__all__ = ["COLLECTION", "Copy", "States"]

COLLECTION = "nested_states"

# Copies a folder into an empty one.
Copy = Callable[[Path, Path], Awaitable[None]]


class States:
    """Makes, copies and removes the folders of nested labs.

    Args:
        store: Says which are in use.
        folder: Where they are; a folder of their own that goes with the lab if None.
    """

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store = store
        self._lasting = folder
        self._folder: Path | None = None

    def of(self, vmid: int) -> Path:
        """Return the folder of a guest, a new one if it has none.

        Raises:
            FileError: It cannot be made.
        """
        name = self._record(vmid).get("id")
        if name is None:
            name = new_uuid()
            self._change(vmid, id=name)
        return self._made(str(name))

    def known(self, vmid: int, snapshot: str | None = None) -> Path | None:
        """Return the folder that a guest has, or had at a snapshot; None if it had none."""
        record = self._record(vmid)
        name = record.get("id") if snapshot is None else record.get("snapshots", {}).get(snapshot)
        return None if name is None else self._place() / str(name)

    async def give(self, vmid: int, source: Path | None, copy: Copy) -> None:
        """Give a guest a copy of a folder in place of its own; a new one, if there is nothing to copy."""
        old = self._record(vmid).get("id")
        self._change(vmid, id=await self._copied(source, copy))
        self._drop(old)

    async def keep(self, vmid: int, snapshot: str, copy: Copy) -> None:
        """Keep a copy of a guest's folder for a snapshot."""
        copied = await self._copied(self.known(vmid), copy)
        self._change(vmid, snapshots={**self._record(vmid).get("snapshots", {}), snapshot: copied})

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the folder of a guest and those of its snapshots, or that of one snapshot."""
        record = self._record(vmid)
        snapshots = dict(record.get("snapshots", {}))
        if snapshot is not None:
            gone = [snapshots.pop(snapshot, None)]
            if record:
                self._change(vmid, snapshots=snapshots)
        else:
            gone = [record.get("id"), *snapshots.values()]
            with self._store.transaction():
                self._store.delete(COLLECTION, str(vmid))
        for name in gone:
            self._drop(name)

    def tidy(self) -> None:
        """Remove what no document names: the rest of what a killed lab did not finish."""
        if self._lasting is None or not self._lasting.is_dir():
            return
        used: set[str | None] = set()
        for record in self._store.items(COLLECTION).values():
            used |= {record.get("id"), *record.get("snapshots", {}).values()}
        for path in self._lasting.iterdir():
            if path.name not in used:
                shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove all folders, unless they are to outlive the lab."""
        if self._folder is not None and self._lasting is None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _record(self, vmid: int) -> dict[str, Any]:
        return dict(self._store.get(COLLECTION, str(vmid)) or {})

    def _change(self, vmid: int, **fields: Any) -> None:
        with self._store.transaction():
            self._store.put(COLLECTION, str(vmid), {**self._record(vmid), **fields})

    async def _copied(self, source: Path | None, copy: Copy) -> str | None:
        if source is None or not _is_folder(source):
            return None
        name = new_uuid()
        await copy(source, self._made(name))
        return name

    def _made(self, name: str) -> Path:
        path = self._place() / name
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as err:
            raise FileError.from_os_error(err, "make the folder", path) from err
        return path

    def _drop(self, name: Any) -> None:
        if name:
            shutil.rmtree(self._place() / str(name), ignore_errors=True)

    def _place(self) -> Path:
        if self._folder is None:
            self._folder = self._lasting or Path(tempfile.mkdtemp(prefix="stackyard-nested-"))
        return self._folder


def _is_folder(path: Path) -> bool:
    return path.is_dir()
