"""Folders that guests have, one each, and the copies of them that their snapshots keep.

A folder has a name of its own, which no other ever had; the document of a guest says which one it has (`id`)
and which its snapshots have (`snapshots`). So a lab that was killed in the middle of something finds either
the old or the new one; what no document names is removed at the next start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.world.generate import new_uuid
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pvelab.runtime.own_folder import OwnFolder
    from pvelab.world.store import Store

__all__ = ["GuestFolders"]


class GuestFolders:
    """Says which folder belongs to whom.

    Args:
        store: Keeps the documents.
        collection: The documents.
        place: The folder that they are in.
    """

    def __init__(self, store: Store, collection: str, place: OwnFolder) -> None:
        self._store = store
        self._collection = collection
        self._place = place

    def of(self, vmid: int, snapshot: str | None = None) -> Path | None:
        """Return the folder that a guest has, or had at a snapshot; None if there is none."""
        path = self._find_folder(vmid, snapshot)
        return path if path is not None and path.is_dir() else None

    def new(self) -> Path:
        """Make a folder that belongs to no one yet.

        Raises:
            FileError: It cannot be created.
        """
        path = self._place.path / new_uuid()
        try:
            path.mkdir(mode=0o700)
        except OSError as err:
            raise FileError.from_os_error(err, "make the folder", path) from err
        return path

    def give(self, vmid: int, folder: Path | None) -> None:
        """Give a guest a folder, or none, in place of the one that it has, which is removed."""
        old = self._find_folder(vmid)
        self._change(vmid, id=folder and folder.name)
        self._remove(old)

    def keep(self, vmid: int, snapshot: str, folder: Path | None) -> None:
        """Give a folder, or none, to a snapshot of a guest."""
        self._change(
            vmid, snapshots={**self._record(vmid).get("snapshots", {}), snapshot: folder and folder.name}
        )

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the folder of a guest and those of its snapshots, or that of one snapshot."""
        record = self._record(vmid)
        kept = record.get("snapshots", {})
        if not record:
            return
        if snapshot is not None:
            gone = [self._find_folder(vmid, snapshot)]
            self._change(vmid, snapshots={name: kept[name] for name in kept if name != snapshot})
        else:
            gone = [self._find_folder(vmid), *(self._find_folder(vmid, name) for name in kept)]
            with self._store.transaction():
                self._store.delete(self._collection, str(vmid))
        for path in gone:
            self._remove(path)

    def tidy(self, others: Iterable[str] = ()) -> None:
        """Remove what no document names, but for these others."""
        named = {
            str(name)
            for record in self._store.items(self._collection).values()
            for name in (record.get("id"), *record.get("snapshots", {}).values())
        }
        self._place.tidy({*named, *others})

    def _find_folder(self, vmid: int, snapshot: str | None = None) -> Path | None:
        record = self._record(vmid)
        name = record.get("id") if snapshot is None else record.get("snapshots", {}).get(snapshot)
        return None if name is None else self._place.path / str(name)

    def _record(self, vmid: int) -> dict[str, Any]:
        return dict(self._store.get(self._collection, str(vmid)) or {})

    def _change(self, vmid: int, **fields: Any) -> None:
        with self._store.transaction():
            self._store.put(self._collection, str(vmid), {**self._record(vmid), **fields})

    def _remove(self, path: Path | None) -> None:
        if path is not None:
            self._place.remove(path)
