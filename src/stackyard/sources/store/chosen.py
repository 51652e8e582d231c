"""The store that a site uses, and opening it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.objects import MemoryObjects, StoreAbsentError, open_objects
from stackyard.clients.objects.open_store import DATABASE
from stackyard.sources.store import earlier_files
from stackyard.sources.store.at_rest import read_ring
from stackyard.sources.store.identity import read_identity
from stackyard.sources.store.last_used import note_last, read_last, require_nothing_elsewhere
from stackyard.sources.store.pool import open_pooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.sources.store.identity import StoreIdentity

__all__ = ["ChosenStore"]

_FOLDER = "state"
# The stores with which runs of this process work that began before any move of them.
_at_work: list[str] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenStore:
    """The store that a site uses.

    Attributes:
        base: The folder for what stays on this machine: caches, and the embedded store.
        address: The store that other machines reach too; None for the embedded one.
        chosen_by: What chose it, for a person.
        site_key: The key of the site as its secrets have it, where they do.
    """

    base: Path
    address: str | None = None
    chosen_by: str = "the default"
    site_key: str | None = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of the embedded store."""
        return self.base / _FOLDER

    @property
    def label(self) -> str:
        """The store, for a person; an address never holds a secret."""
        return self.address or str(self.folder)

    @property
    def is_shared(self) -> bool:
        """Whether other machines reach it too."""
        return self.address is not None

    def open(self) -> Objects:
        """Open the store to work with it; the embedded one is created if need be.

        Raises:
            StoreSwitchedError: The states of the site are in another store.
            StoreMovedError: Everything in it was moved to another store, or is being moved.
            OtherSiteError: It belongs to another site.
            SiteKeyMissingError: It was used with a key that is not here.
            StoreError: It cannot be used.
        """
        objects = self._open(create=True)
        try:
            self._require_own(self._require_settled(objects), is_key_needed=True)
            if earlier_files.are_there(self.base):
                earlier_files.take_over(self, objects)
        except BaseException:
            objects.close()
            raise
        return objects

    def read(self) -> Objects:
        """Open the store to read it: nothing is created, and one that is not there yet is empty.

        Raises:
            StoreSwitchedError: The states of the site are in another store.
            StoreMovedError: Everything in it was moved to another store, or is being moved.
            OtherSiteError: It belongs to another site.
            StoreError: It cannot be used.
        """
        if earlier_files.are_there(self.base) and os.access(self.base, os.W_OK):
            return self.open()
        return self._read(
            lambda objects: self._require_own(self._require_settled(objects), is_key_needed=False)
        )

    def read_as_is(self) -> Objects:
        """Open the store to read it, also while it is moved, and without the key of the site.

        Raises:
            StoreSwitchedError: The states of the site are in another store.
            StoreMovedError: Everything in it was moved to another store.
            StoreError: It cannot be used.
        """

        def check(objects: Objects) -> None:
            identity = read_identity(objects)
            if identity is not None:
                identity.require_not_left()
            self._require_nothing_elsewhere("" if identity is None else identity.id)

        return self._read(check)

    def _read(self, check: Callable[[Objects], None]) -> Objects:
        """Open the store without creating anything, and check it; one that is not there yet is empty."""
        if self.address is None and not (self.folder / DATABASE).exists():
            return MemoryObjects()
        try:
            objects = self._open(create=False)
            try:
                check(objects)
            except BaseException:
                objects.close()
                raise
        except StoreAbsentError:
            self._require_nothing_elsewhere("")
            return MemoryObjects()
        return objects

    def open_as_is(self, *, create: bool = False) -> Objects:
        """Open the store whatever became of it, as for a move.

        Raises:
            StoreError: It cannot be used.
        """
        return self._open(create=create)

    def _open(self, *, create: bool) -> Objects:
        ring = read_ring()
        if self.address is None:
            return open_objects(self.folder, ring=ring, create=create)
        return open_pooled(self.address, ring=ring, create=create)

    def require_here(self, objects: Objects) -> StoreIdentity | None:
        """Refuse a store that was moved, or is being moved; return whose it is.

        A run asks once more when its lease is there: a move either sees the lease and waits, or has begun.

        Raises:
            StoreMovedError: It was.
            StoreError: It cannot be used.
        """
        identity = read_identity(objects)
        if identity is not None:
            identity.require_here()
        return identity

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Let this process go on with the store for the length of a block, also when a move begins.

        Only for a run that has its lease, and has looked once more since: a move waits for it.
        """
        _at_work.append(self.label)
        try:
            yield
        finally:
            _at_work.remove(self.label)

    def _require_settled(self, objects: Objects) -> StoreIdentity | None:
        identity = read_identity(objects)
        if identity is not None and self.label in _at_work:
            identity.require_not_left()
        elif identity is not None:
            identity.require_here()
        if self._require_nothing_elsewhere("" if identity is None else identity.id):
            note_last(self)
        return identity

    def _require_own(self, identity: StoreIdentity | None, *, is_key_needed: bool) -> None:
        """Refuse a shared store of another site, before anything of it is read or written."""
        if not self.is_shared or identity is None or not identity.keys:
            return
        from stackyard.sources.store.keys import require_own  # lazy: cryptography, for shared stores alone

        require_own(self, identity, is_key_needed=is_key_needed)

    def _require_nothing_elsewhere(self, own_id: str) -> bool:
        """Refuse this store while another one holds the states; return whether it was not the last used."""
        last = read_last(self.base)
        if last == (self.address or ""):
            return False
        require_nothing_elsewhere(self, last, own_id)
        return True
