"""Volumes: allocated, named, resized and freed, each counted against the size of its storage.

A document `volumes/<scope>|<volid>` has `volid storage scope place content format size vmid ctime`,
`parent` for a linked clone, `protected` and `notes` where set, and what an upload or download adds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError
from stackyard.lab.storages import type_of

if TYPE_CHECKING:
    from stackyard.lab.clock import LabClock
    from stackyard.lab.storages import Storages
    from stackyard.lab.store import Document, Store

__all__ = ["NewVolume", "Volumes", "parse_volume_id"]

_VOLUME_ID = re.compile(r"([A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]):(.+)", re.DOTALL)
_NUMBERED = re.compile(r"(?:.*/)?(?:vm|base|subvol|basevol)-\d+-disk-(\d+)(?:\.\w+)?")
_EXTENT = 4 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVolume:
    """A volume to allocate for a guest; without a name it gets the lowest free `vm-<vmid>-disk-<n>`."""

    storage: str
    node: str
    vmid: int
    size: int
    format: str | None = None
    name: str | None = None
    content: str = "images"
    parent: str | None = None


def parse_volume_id(volid: str) -> tuple[str, str]:
    """Return the storage and the name of a volume.

    Raises:
        PveError: The text is no volume id.
    """
    found = _VOLUME_ID.fullmatch(volid)
    if not found:
        raise PveError(f"unable to parse volume ID '{volid}'")
    return found[1], found[2]


class Volumes:
    """Changes the content of storages."""

    def __init__(self, store: Store, storages: Storages, clock: LabClock) -> None:
        self._store = store
        self._storages = storages
        self._clock = clock
        self._by_guest = store.index("volumes", "vmid")

    def find(self, volid: str, node: str) -> Document | None:
        """Return a volume as a node sees it, or None."""
        storage, _ = parse_volume_id(volid)
        return self._store.get("volumes", f"{self._storages.scope(storage, node)}|{volid}")

    def require(self, volid: str, node: str) -> Document:
        """Return a volume.

        Raises:
            PveError: There is none of that id.
        """
        found = self.find(volid, node)
        if found is None:
            raise PveError(f"volume '{volid}' does not exist")
        return found

    def of_guest(self, vmid: int, node: str) -> list[Document]:
        """Return every volume on a node's storages that is named for a guest."""
        return [
            volume
            for volume in self._by_guest.find(vmid).values()
            if volume["scope"] in ("", node) and volume["content"] in ("images", "rootdir")
        ]

    def allocate(self, new: NewVolume) -> str:
        """Add a volume and return its id.

        Raises:
            PveError: The storage cannot be used, cannot hold the format, or is full.
        """
        config = self._storages.require(new.storage, new.node)
        kind = type_of(config)
        chosen = new.format or kind.default_format
        if chosen not in kind.formats:
            raise PveError(f"unsupported format '{chosen}'")
        name = new.name or self._free_name(new, chosen, files=kind.files)
        volid = f"{new.storage}:{new.vmid}/{name}" if kind.files else f"{new.storage}:{name}"
        if self.find(volid, new.node) is not None:
            raise PveError(f"disk image '{name}' already exists")
        self._require_space(new.storage, new.node, new.size, name)
        self.add(
            volid, new.node, new.size, content=new.content, format=chosen, vmid=new.vmid, parent=new.parent
        )
        return volid

    def add(self, volid: str, node: str, size: int, **fields: Any) -> Document:
        """Put a volume of any content, without asking whether it fits; None fields are left out."""
        storage, _ = parse_volume_id(volid)
        scope = self._storages.scope(storage, node)
        document = {
            "volid": volid,
            "storage": storage,
            "scope": scope,
            "place": f"{scope}|{storage}",
            "size": size,
            "ctime": int(self._clock.now()),
            **{key: value for key, value in fields.items() if value is not None},
        }
        self._store.put("volumes", f"{scope}|{volid}", document)
        return document

    def resize(self, volid: str, node: str, size: int) -> None:
        """Make a volume larger.

        Raises:
            PveError: It is not there, or the storage is full.
        """
        volume = self.require(volid, node)
        more = size - int(volume["size"])
        if more > 0:
            self._require_space(str(volume["storage"]), node, more, volid)
        self._store.put("volumes", f"{volume['scope']}|{volid}", {**volume, "size": size})

    def rename(self, volid: str, node: str, new_volid: str, **fields: Any) -> None:
        """Give a volume another id, for a template or another owner."""
        volume = self.require(volid, node)
        self._store.delete("volumes", f"{volume['scope']}|{volid}")
        renamed = {**volume, "volid": new_volid, **fields}
        self._store.put("volumes", f"{volume['scope']}|{new_volid}", renamed)

    def free(self, volid: str, node: str) -> bool:
        """Remove a volume; False if it was not there."""
        volume = self.find(volid, node)
        if volume is None:
            return False
        self._store.delete("volumes", f"{volume['scope']}|{volid}")
        return True

    def _free_name(self, new: NewVolume, chosen: str, *, files: bool) -> str:
        taken = set()
        for volume in self.of_guest(new.vmid, new.node):
            found = _NUMBERED.fullmatch(str(volume["volid"]).partition(":")[2])
            if found and volume["storage"] == new.storage:
                taken.add(int(found[1]))
        number = next(n for n in range(len(taken) + 1) if n not in taken)
        prefix = "subvol" if chosen == "subvol" else "vm"
        return f"{prefix}-{new.vmid}-disk-{number}" + (f".{chosen}" if files else "")

    def _require_space(self, storage: str, node: str, size: int, name: str) -> None:
        free = self._storages.total(storage, node) - self._storages.used(storage, node)
        if size <= free:
            return
        config = self._storages.config(storage)
        match config["type"]:
            case "lvm":
                raise PveError(f"not enough free space ({max(0, free) // 1024} < {size // 1024})")
            case "lvmthin":
                needed, left = -(-size // _EXTENT), max(0, free) // _EXTENT
                group = config.get("vgname", storage)
                raise PveError(
                    f"lvcreate '{group}/{name}' error:   Volume group \"{group}\" has insufficient free space"
                    f" ({left} extents): {needed} required."
                )
            case "zfspool" | "zfs":
                raise PveError("zfs error: cannot create volume: out of space")
            case _:
                raise PveError(f"unable to create image: {name}: No space left on device")
