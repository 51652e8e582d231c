"""Storages: their definitions, where they are available, and how full they are.

Documents: `storages/<id>` is the definition as in storage.cfg (`type content path nodes shared disable
...`, the lists as comma text); `capacities/<scope>|<id>` has `total`, the bytes that fit, and `full` while a
fault fills it, where the scope is the node's name or empty for a shared storage; `volumes/<scope>|<volid>` is
one volume (see `volumes`); `storages_offline/<node>|<id>` is there while a fault keeps a node from the server
of a storage.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.store import Document, Store

__all__ = ["ASKED_TYPES", "KNOWN_TYPES", "OFFLINE", "StorageType", "Storages", "type_of"]

DEFAULT_CAPACITY = 100 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageType:
    """What a type of storage can hold and how it names it."""

    files: bool = False
    formats: tuple[str, ...] = ("raw",)
    default_format: str = "raw"
    container_format: str = "raw"
    always_shared: bool = False
    snapshots: bool = False


_FILES = StorageType(files=True, formats=("raw", "qcow2", "vmdk", "subvol"))
_TYPES: Mapping[str, StorageType] = {
    "dir": _FILES,
    "nfs": StorageType(files=True, formats=_FILES.formats, always_shared=True),
    "cifs": StorageType(files=True, formats=_FILES.formats, always_shared=True),
    "cephfs": StorageType(files=True, formats=(), always_shared=True),
    "btrfs": StorageType(files=True, formats=("raw", "subvol"), container_format="subvol", snapshots=True),
    "lvm": StorageType(),
    "lvmthin": StorageType(snapshots=True),
    "zfspool": StorageType(formats=("raw", "subvol"), container_format="subvol", snapshots=True),
    "zfs": StorageType(always_shared=True, snapshots=True),
    "rbd": StorageType(always_shared=True, snapshots=True),
    "iscsi": StorageType(always_shared=True),
    "iscsidirect": StorageType(always_shared=True),
    "pbs": StorageType(formats=(), always_shared=True),
    "esxi": StorageType(formats=(), always_shared=True),
}
KNOWN_TYPES = frozenset(_TYPES)
# Before these are used, Proxmox asks their server whether it is there.
ASKED_TYPES = frozenset(("nfs", "cifs", "iscsi"))
OFFLINE = "storages_offline"
# Set apart for documentation: no server has such an address.
_NOWHERE = tuple(
    map(ipaddress.ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32"))
)


def type_of(config: Mapping[str, Any]) -> StorageType:
    """Return what the type of a storage can do."""
    return _TYPES[str(config["type"])]


class Storages:
    """Finds storages and counts what they hold."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._used: dict[tuple[str, str], int] = {}
        self._by_place = store.index("volumes", "place")
        store.watch("volumes", self._count)

    def all(self) -> Mapping[str, Document]:
        """Return all definitions by id."""
        return self._store.items("storages")

    def config(self, storage: str) -> Document:
        """Return a definition.

        Raises:
            PveError: There is no such storage.
        """
        found = self._store.get("storages", storage)
        if found is None:
            raise PveError(f"storage '{storage}' does not exist")
        return found

    def require(self, storage: str, node: str) -> Document:
        """Return the definition of a storage that can be used on a node now.

        Raises:
            PveError: It does not exist, is disabled, or is not available on that node or not online.
        """
        config = self.config(storage)
        if config.get("disable"):
            raise PveError(f"storage '{storage}' is disabled")
        if not self.is_on(config, node):
            raise PveError(f"storage '{storage}' is not available on node '{node}'")
        if not self.is_online(config, node):
            raise PveError(f"storage '{storage}' is not online")
        return config

    def is_online(self, config: Mapping[str, Any], node: str) -> bool:
        """Return whether a node reaches the server of a storage; one without a server is always there.

        The lab asks no one: servers answer, but for those at addresses and names that are set apart for
        documentation, and those that a fault has taken away.
        """
        if config["type"] not in ASKED_TYPES:
            return True
        if self._store.get(OFFLINE, f"{node}|{config['storage']}") is not None:
            return False
        return not _is_nowhere(str(config.get("server") or config.get("portal") or ""))

    @staticmethod
    def is_on(config: Mapping[str, Any], node: str) -> bool:
        """Return whether a storage is available on a node."""
        return not config.get("nodes") or node in split_list(str(config["nodes"]))

    @staticmethod
    def is_shared(config: Mapping[str, Any]) -> bool:
        """Return whether all nodes see the same content."""
        return bool(config.get("shared")) or type_of(config).always_shared

    @staticmethod
    def content_types(config: Mapping[str, Any]) -> list[str]:
        """Return the kinds of content that a storage takes."""
        return split_list(str(config.get("content", "")))

    def scope(self, storage: str, node: str) -> str:
        """Return the part of keys that tells apart the nodes of a local storage; empty for a shared one."""
        return "" if self.is_shared(self.config(storage)) else node

    def total(self, storage: str, node: str) -> int:
        """Return how many bytes fit."""
        capacity = self._store.get("capacities", f"{self.scope(storage, node)}|{storage}")
        return DEFAULT_CAPACITY if capacity is None else int(capacity["total"])

    def used(self, storage: str, node: str) -> int:
        """Return how many bytes are taken: all of them while the storage is said to be full.

        Every volume counts as written to its end; volumes that were promised more than there is take all.
        """
        total = self.total(storage, node)
        if self.is_full(storage, node):
            return total
        return min(total, self._used.get((self.scope(storage, node), storage), 0))

    def is_full(self, storage: str, node: str) -> bool:
        """Return whether a fault has filled the storage."""
        capacity = self._store.get("capacities", f"{self.scope(storage, node)}|{storage}")
        return capacity is not None and bool(capacity.get("full"))

    def volumes(self, storage: str, node: str) -> list[Document]:
        """Return the volumes of a storage as a node sees them, by name."""
        found = self._by_place.find(f"{self.scope(storage, node)}|{storage}")
        return sorted(found.values(), key=lambda volume: str(volume["volid"]))

    def status(self, storage: str, node: str) -> dict[str, Any]:
        """Return what the API tells of a storage on a node."""
        config = self.config(storage)
        enabled = not config.get("disable") and self.is_on(config, node)
        status = {
            "type": config["type"],
            "total": 0,
            "avail": 0,
            "used": 0,
            "shared": int(self.is_shared(config)),
            "content": ",".join(self.content_types(config)),
            "active": 0,
            "enabled": int(enabled),
        }
        if enabled and self.is_online(config, node):
            total, used = self.total(storage, node), self.used(storage, node)
            status |= {"total": total, "used": used, "avail": max(0, total - used), "active": 1}
        return status

    def _count(self, _key: str, old: Document | None, new: Document | None) -> None:
        for volume, sign in ((old, -1), (new, 1)):
            if volume is not None:
                place = (str(volume["scope"]), str(volume["storage"]))
                own = int(volume["size"]) - int(volume.get("borrowed", 0))
                self._used[place] = self._used.get(place, 0) + sign * own


def _is_nowhere(server: str) -> bool:
    try:
        address = ipaddress.ip_address(server)
    except ValueError:
        return server.rpartition(".")[2] == "invalid"
    return any(address in network for network in _NOWHERE)
