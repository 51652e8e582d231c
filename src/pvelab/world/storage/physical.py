"""Physical disks of nodes, and the ZFS pools that are made of them.

Documents: `physical_disks/<node>` has the `disks` by path, each with `size type model vendor serial wwn`,
and, once it is used, `used` (`LVM`, `ZFS`), `by` (the name of what it became part of) and `gpt`.
A node without a document has the disks of `DEFAULT_DISKS`. What disks became is in
`disk_pools/<node>|<kind>|<name>`: its `devices`, its `size`, and what its kind adds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pvelab.world.store import Document, Store

__all__ = ["DEFAULT_DISKS", "Disk", "DiskPool", "NodeDisks", "declare_disks", "link_by_id"]

_DISKS, _POOLS = "physical_disks", "disk_pools"
_GB = 10**9
SYSTEM_DISK = "/dev/nvme0n1"
SYSTEM_GROUP = "pve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk that a node is to have; serial number and world wide name are made up where none is given."""

    path: str
    size: int
    type: str = "ssd"
    model: str = "Lab SSD"
    vendor: str = "ATA     "
    serial: str = ""


DEFAULT_DISKS = (
    Disk(path=SYSTEM_DISK, size=3 * 10**12, type="nvme", model="Lab NVMe", vendor="unknown"),
    *(Disk(path=f"/dev/sd{letter}", size=960 * _GB) for letter in "abcd"),
    *(Disk(path=f"/dev/sd{letter}", size=4000 * _GB, type="hdd", model="Lab HDD") for letter in "ef"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskPool:
    """What disks of a node became."""

    kind: str
    name: str
    devices: tuple[str, ...]
    size: int
    details: Mapping[str, Any] = field(default_factory=dict)


def declare_disks(store: Store, node: str, disks: Iterable[Disk]) -> None:
    """Give a node other disks than the usual ones, all unused but the one it boots from."""
    store.put(_DISKS, node, {"disks": {disk.path: _document(node, disk) for disk in disks}})


def link_by_id(disk: Mapping[str, Any]) -> str:
    """Return the name of a disk that stays the same wherever it is plugged in."""
    return f"/dev/disk/by-id/wwn-{disk['wwn']}"


class NodeDisks:
    """The disks of one node."""

    def __init__(self, store: Store, node: str) -> None:
        self._store = store
        self.node = node

    def disks(self) -> dict[str, dict[str, Any]]:
        """Return the disks by path, each a copy."""
        kept = self._store.get(_DISKS, self.node)
        if kept is None:
            return {disk.path: _document(self.node, disk) for disk in DEFAULT_DISKS}
        return {path: dict(disk) for path, disk in kept["disks"].items()}

    def require(self, path: str) -> dict[str, Any]:
        """Return a disk.

        Raises:
            PveError: There is no such disk.
        """
        if not path.startswith("/dev/"):
            raise PveError(f"got unusual device path '{path}'")
        found = self.disks().get(path)
        if found is None:
            raise PveError("not a valid block device")
        return found

    def require_unused(self, path: str) -> dict[str, Any]:
        """Return a disk that nothing uses.

        Raises:
            PveError: There is no such disk, or it is in use.
        """
        found = self.require(path)
        if found.get("used"):
            raise PveError(f"device '{path}' is already in use")
        return found

    def change(self, paths: Iterable[str], **fields: Any) -> None:
        """Set fields of disks; None removes one."""
        disks = self.disks()
        for path in paths:
            if path in disks:
                changed = {**disks[path], **fields}
                disks[path] = {key: value for key, value in changed.items() if value is not None}
        self._store.put(_DISKS, self.node, {"disks": disks})

    def pools(self, kind: str) -> dict[str, Document]:
        """Return what was made of disks, of one kind, by name."""
        prefix = f"{self.node}|{kind}|"
        found = self._store.items(_POOLS).items()
        return {key.removeprefix(prefix): pool for key, pool in found if key.startswith(prefix)}

    def add(self, pool: DiskPool, *, used: str) -> None:
        """Make disks part of something new."""
        key = f"{self.node}|{pool.kind}|{pool.name}"
        document = {"name": pool.name, "devices": list(pool.devices), "size": pool.size, **pool.details}
        self._store.put(_POOLS, key, document)
        self.change(pool.devices, used=used, by=pool.name, gpt=1)

    def remove(self, kind: str, name: str, *, free: bool) -> None:
        """Drop what was made of disks; with `free` they are wiped, else what was on them is still there."""
        pool = self._store.get(_POOLS, f"{self.node}|{kind}|{name}")
        if pool is None:
            return
        self._store.delete(_POOLS, f"{self.node}|{kind}|{name}")
        if free:
            self.change(pool["devices"], used=None, by=None, gpt=None)
        else:
            self.change(pool["devices"], by=None)


def _document(node: str, disk: Disk) -> dict[str, Any]:
    digits = hashlib.sha256(f"{node}{disk.path}".encode()).hexdigest().upper()
    used = {"used": "LVM", "by": SYSTEM_GROUP, "gpt": 1} if disk.path == SYSTEM_DISK else {}
    return {
        "size": disk.size,
        "type": disk.type,
        "model": disk.model,
        "vendor": disk.vendor,
        "serial": disk.serial or f"LAB{digits[:12]}",
        "wwn": f"0x5{digits[12:27].lower()}",
        **used,
    }
