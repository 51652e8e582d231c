"""The folders of nested labs, and the copies of them that snapshots and clones of their guests have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pvelab.runtime.own_folder import OwnFolder
from pvelab.world.guests.folders import GuestFolders

if TYPE_CHECKING:
    from pvelab.world.store import Store

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
        self._place = OwnFolder(folder, "stackyard-nested-")
        self._folders = GuestFolders(store, COLLECTION, self._place)

    def of(self, vmid: int) -> Path:
        """Return the folder of a guest, a new one if it has none.

        Raises:
            FileError: It cannot be created.
        """
        path = self._folders.of(vmid)
        if path is None:
            path = self._folders.new()
            self._folders.give(vmid, path)
        return path

    def find(self, vmid: int, snapshot: str | None = None) -> Path | None:
        """Return the folder that a guest has, or had at a snapshot; None if it had none."""
        return self._folders.of(vmid, snapshot)

    async def give(self, vmid: int, source: Path | None, copy: Copy) -> None:
        """Give a guest a copy of a folder in place of its own; a new one, if there is nothing to copy."""
        self._folders.give(vmid, await self._copy_folder(source, copy))

    async def keep(self, vmid: int, snapshot: str, copy: Copy) -> None:
        """Keep a copy of a guest's folder for a snapshot."""
        self._folders.keep(vmid, snapshot, await self._copy_folder(self._folders.of(vmid), copy))

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the folder of a guest and those of its snapshots, or that of one snapshot."""
        self._folders.forget(vmid, snapshot)

    def tidy(self) -> None:
        """Remove what no document names: the rest of what a killed lab did not finish."""
        self._folders.tidy()

    def close(self) -> None:
        """Remove all folders, unless they are to outlive the lab."""
        self._place.close()

    async def _copy_folder(self, source: Path | None, copy: Copy) -> Path | None:
        if source is None:
            return None
        target = self._folders.new()
        await copy(source, target)
        return target
