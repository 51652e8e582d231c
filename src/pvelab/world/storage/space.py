"""Whether a volume fits into its storage, and what the programs of that storage say when it does not.

Some storages promise more than they have: a thin pool takes volumes as long as a block of it is free, however
large they are to become. Others set aside the whole size of a volume when it is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.volume_names import path_of

if TYPE_CHECKING:
    from pvelab.world.storage.storages import Storages
    from pvelab.world.store import Document

__all__ = ["is_thin", "require_space", "require_space_to_grow"]

EXTENT = 4 * 2**20
_ALWAYS_THIN = frozenset(("lvmthin", "rbd"))
_THIN_IF_SPARSE = frozenset(("zfspool", "zfs"))


def is_thin(config: Document) -> bool:
    """Return whether a storage can promise its volumes more space than it has."""
    return config["type"] in _ALWAYS_THIN or (
        config["type"] in _THIN_IF_SPARSE and bool(int(config.get("sparse") or 0))
    )


def require_space(storages: Storages, storage: str, node: str, name: str, size: int) -> None:
    """Refuse a new volume that does not fit.

    Raises:
        PveError: The storage is full, or sets space aside and has less than this.
    """
    config = storages.config(storage)
    free = _free(storages, storage, node, config)
    if free is None or size <= free:
        return
    group = config.get("vgname", storage)
    match config["type"]:
        case "lvm":
            raise PveError(f"not enough free space ({free // 1024} < {size // 1024})")
        case "lvmthin":
            raise PveError(
                f"lvcreate '{group}/{name}' error:   Cannot create new thin volume, free space in thin pool"
                f" {group}/{config.get('thinpool', 'data')} reached threshold."
            )
        case "zfspool" | "zfs":
            raise PveError(f"zfs error: cannot create '{config.get('pool', storage)}/{name}': out of space")
        case _:
            raise PveError(f"unable to create image: {name}: No space left on device")


def require_space_to_grow(storages: Storages, volid: str, node: str, size: int, more: int) -> None:
    """Refuse to make a volume larger where what is to be added does not fit.

    Args:
        storages: The storages of the lab.
        volid: The volume.
        node: The node that sees it.
        size: How large it is to become.
        more: How much of that it does not have yet.

    Raises:
        PveError: The storage sets space aside and has less than this.
    """
    storage, _, name = volid.partition(":")
    config = storages.config(storage)
    free = _free(storages, storage, node, config)
    # What a thin volume may become is a number: the pool is asked for blocks only when they are written.
    if free is None or more <= free or is_thin(config):
        return
    own, group = name.rpartition("/")[2], config.get("vgname", storage)
    match config["type"]:
        case "lvm":
            raise PveError(
                f"error resizing volume '/dev/{group}/{own}':   Insufficient free space:"
                f" {-(-more // EXTENT)} extents needed, but only {free // EXTENT} available"
            )
        case "zfspool" | "zfs":
            raise PveError(
                f"zfs error: cannot set property for '{config.get('pool', storage)}/{own}':"
                " size is greater than available space"
            )
        case _:
            chosen = own.rpartition(".")[2] if "." in own else "raw"
            ahead = {"raw": " --preallocation=off", "qcow2": " --preallocation=metadata"}.get(chosen, "")
            raise PveError(
                f"command '/usr/bin/qemu-img resize{ahead} -f {chosen} {path_of(config, volid)} {size}'"
                " failed: exit code 1"
            )


def _free(storages: Storages, storage: str, node: str, config: Document) -> int | None:
    """Return how many bytes are free for volumes; None where any number of them is promised."""
    if is_thin(config):
        return 0 if storages.is_full(storage, node) else None
    return max(0, storages.total(storage, node) - storages.used(storage, node))
