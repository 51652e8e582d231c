"""Where inventories are published: a folder with every version and one name for the current, or a bucket."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stackyard.base import directories, files, locks
from stackyard.base.errors import FileError
from stackyard.clients.objects import ABSENT, open_objects
from stackyard.inventory.ansible import as_yaml
from stackyard.inventory.contract import Inventory, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.clients.objects import Objects
    from stackyard.sources.store import ChosenStore

__all__ = ["InventoryTarget", "Published", "StoredInventory", "open_inventory_target"]

JSON_FILE = "ansible_inventory.json"
YAML_FILE = "inventory.yml"
_CURRENT = "current"
_VERSION = re.compile(r"(\d{6})")
_KEPT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What publishing did.

    Attributes:
        where: Where readers find it.
        is_new: Whether it says something else than the one before.
    """

    where: str
    is_new: bool


class InventoryTarget(Protocol):
    """A place for the inventories of one target."""

    def read(self) -> Inventory | None:
        """Return the inventory that was published last.

        Raises:
            IncompleteError: What is there is none.
            StackyardError: The place cannot be read.
        """

    def publish(self, inventory: Inventory) -> Published:
        """Put a new one in place of the last, as a whole.

        Raises:
            StackyardError: It cannot be written; the last one stays.
        """


def open_inventory_target(where: Path | str) -> InventoryTarget:
    """Return a place: a folder, or `s3://bucket/prefix?endpoint=https://host:port`."""
    if isinstance(where, str) and "://" in where:
        return _Bucket(where)
    return _Folder(Path(where))


class _Folder:
    """Each version is a folder; `current` leads to the last, and is replaced at once."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self) -> Inventory | None:
        path = self._root / _CURRENT / JSON_FILE
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as err:
            raise FileError.from_os_error(err, "read", path) from err
        return parse(data)

    def publish(self, inventory: Inventory) -> Published:
        directories.ensure_private(self._root)
        # Two that publish at once would take the same number, and mix their files.
        with locks.hold_folder(self._root):
            return self._publish(inventory)

    def _publish(self, inventory: Inventory) -> Published:
        data = inventory.data()
        where = str(self._root / _CURRENT / YAML_FILE)
        current = self._root / _CURRENT / JSON_FILE
        with contextlib.suppress(OSError):
            if current.read_bytes() == data:
                return Published(where=where, is_new=False)
        version = self._root / f"{max((0, *self._versions())) + 1:06d}"
        directories.ensure_private(version)
        files.replace_file(version / JSON_FILE, data)
        files.replace_file(version / YAML_FILE, as_yaml(inventory).encode())
        self._point_at(version)
        self._forget()
        return Published(where=where, is_new=True)

    def _versions(self) -> Iterator[int]:
        for name in os.listdir(self._root) if self._root.is_dir() else ():
            if _VERSION.fullmatch(name):
                yield int(name)

    def _point_at(self, version: Path) -> None:
        link = self._root / f".{_CURRENT}.{os.getpid()}"
        try:
            with contextlib.suppress(FileNotFoundError):
                link.unlink()
            link.symlink_to(version.name)
            os.replace(link, self._root / _CURRENT)
        except OSError as err:
            raise FileError.from_os_error(err, "replace", self._root / _CURRENT) from err

    def _forget(self) -> None:
        """Remove what is older than the versions that are kept."""
        for number in sorted(self._versions())[:-_KEPT]:
            folder = self._root / f"{number:06d}"
            for name in (JSON_FILE, YAML_FILE):
                (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                folder.rmdir()


class _Bucket:
    """One object with the document; the bucket's own versions are the history."""

    def __init__(self, address: str) -> None:
        self._address = address

    def read(self) -> Inventory | None:
        with self._objects(create=False) as objects:
            stored = objects.get(JSON_FILE)
        return None if stored is None else parse(stored.data)

    def publish(self, inventory: Inventory) -> Published:
        data = inventory.data()
        with self._objects(create=True) as objects:
            stored = objects.get(JSON_FILE)
            if stored is not None and stored.data == data:
                return Published(where=self._address, is_new=False)
            # Written only over the one that was read: of two that publish, none is lost without a word.
            objects.put(JSON_FILE, data, expect=ABSENT if stored is None else stored.tag)
        return Published(where=self._address, is_new=True)

    @contextlib.contextmanager
    def _objects(self, *, create: bool) -> Iterator[Objects]:
        with contextlib.closing(open_objects(self._address, create=create)) as objects:
            yield objects


class StoredInventory:
    """An object in the store of a site, and a copy in a folder on this machine for Ansible to read.

    Args:
        store: The store of the site.
        key: The object.
        copy: The folder.
    """

    def __init__(self, store: ChosenStore, key: str, copy: InventoryTarget) -> None:
        self._store = store
        self._key = key
        self._copy = copy

    def read(self) -> Inventory | None:
        """Return what is stored; where nothing is, what an earlier stackyard left in the folder."""
        with contextlib.closing(self._store.read()) as objects:
            stored = objects.get(self._key)
        return self._copy.read() if stored is None else parse(stored.data)

    def publish(self, inventory: Inventory) -> Published:
        """Store it over the one that was read, and copy it."""
        data = inventory.data()
        with contextlib.closing(self._store.open()) as objects:
            stored = objects.get(self._key)
            is_new = stored is None or stored.data != data
            if is_new:
                objects.put(self._key, data, expect=ABSENT if stored is None else stored.tag)
        return dataclasses.replace(self._copy.publish(inventory), is_new=is_new)
