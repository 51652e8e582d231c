"""Volumes: allocated, named, resized and freed, each counted against the size of its storage.

A document `volumes/<scope>|<volid>` has `volid storage scope place content format size vmid ctime`,
`protected` and `notes` where set, and what an upload or download adds. A disk that was made from an image has
`image` (see `lineage`). A linked clone has `parent`, the name of its base, and `borrowed`, the bytes of its
size that the base holds already and that count only there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.world.storage.space import require_space, require_space_to_grow
from pvelab.world.storage.storages import type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.clock import LabClock
    from pvelab.world.storage.storages import Storages
    from pvelab.world.store import Document, Store

__all__ = ["NewVolume", "Volumes", "parse_volume_id", "round_size"]

_VOLUME_ID = re.compile(r"([A-Za-z][A-Za-z0-9\-_.]*[A-Za-z0-9]):(.+)", re.DOTALL)
_NUMBERED = re.compile(r"(?:.*/)?(?:vm|base|subvol|basevol)-\d+-disk-(\d+)(?:\.\w+)?")
_EXTENT = 4 * 2**20
# Sizes are rounded up to what the storage can hold: extents of LVM, whole MiB of ZFS and Ceph.
_GRAINS = {"lvm": _EXTENT, "lvmthin": _EXTENT, "zfspool": 2**20, "zfs": 2**20, "rbd": 2**20}


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
    image: Mapping[str, Any] | None = None


def round_size(config: Document, size: int) -> int:
    """Return how large a volume becomes that is to have some size, by its storage."""
    grain = _GRAINS.get(str(config["type"]), 1)
    return -(-size // grain) * grain


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
        self._by_parent = store.index("volumes", "parent")

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
        chosen = str(new.format or config.get("format") or kind.default_format)
        if chosen not in kind.formats:
            raise PveError(f"unsupported format '{chosen}'")
        name = new.name or self.free_name(new, chosen)
        volid = f"{new.storage}:{new.vmid}/{name}" if kind.files else f"{new.storage}:{name}"
        if self.find(volid, new.node) is not None:
            raise PveError(f"disk image '{name}' already exists")
        size = round_size(config, new.size)
        require_space(self._storages, new.storage, new.node, name, size)
        self.add(
            volid,
            new.node,
            size,
            content=new.content,
            format=chosen,
            vmid=new.vmid,
            parent=new.parent,
            image=new.image,
        )
        return volid

    def free_name(self, new: NewVolume, chosen: str) -> str:
        """Return the lowest free name for a volume of a guest in a format."""
        taken = set()
        for volume in self.of_guest(new.vmid, new.node):
            found = _NUMBERED.fullmatch(str(volume["volid"]).partition(":")[2])
            if found and volume["storage"] == new.storage:
                taken.add(int(found[1]))
        number = next(n for n in range(len(taken) + 1) if n not in taken)
        prefix = "subvol" if chosen == "subvol" else "vm"
        files = type_of(self._storages.config(new.storage)).files
        return f"{prefix}-{new.vmid}-disk-{number}" + (f".{chosen}" if files else "")

    def clones_of(self, volid: str, node: str) -> list[Document]:
        """Return the linked clones of a base."""
        storage, name = parse_volume_id(volid)
        place = f"{self._storages.scope(storage, node)}|{storage}"
        return [volume for volume in self._by_parent.find(name).values() if volume["place"] == place]

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
        size = round_size(self._storages.config(str(volume["storage"])), size)
        more = size - int(volume["size"])
        if more > 0:
            require_space_to_grow(self._storages, volid, node, size, more)
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
        self._store.delete("volume_snapshots", f"{volume['scope']}|{volid}")
        # What the clones shared with their base is now held by the first of them.
        for position, clone in enumerate(self.clones_of(volid, node)):
            left = {key: value for key, value in clone.items() if key not in ("parent", "borrowed")}
            borrowed = {"borrowed": clone["borrowed"]} if position and "borrowed" in clone else {}
            self._store.put("volumes", f"{clone['scope']}|{clone['volid']}", {**left, **borrowed})
        return True
