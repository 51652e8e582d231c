"""Disk images of guests: bases of templates, linked clones, other owners, snapshots of volumes.

Everything here happens inside the running transaction; `allocation` holds the storage lock around it.
A document `volume_snapshots/<scope>|<volid>` has the size of the volume at each of its snapshots, by name,
the oldest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volume_features import base_volume_id, is_base, linked_volume_id
from pvelab.world.storage.volumes import NewVolume, parse_volume_id

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = [
    "base_in_name",
    "check_unused_base",
    "clone_volume",
    "copy_snapshots",
    "drop_snapshot",
    "make_base",
    "reassign",
    "require_rollback",
    "roll_back",
    "snapshots_of",
    "take_snapshot",
]

_LATEST_ONLY = frozenset(("zfspool", "zfs"))


def base_in_name(volid: str) -> str | None:
    """Return the name of the base that a linked clone has in its own name, or None."""
    _, name = parse_volume_id(volid)
    parts = name.split("/")
    if len(parts) == 4:
        return parts[1]
    return parts[0] if len(parts) == 2 and parts[0].startswith(("base-", "basevol-")) else None


def check_unused_base(world: World, volid: str, node: str) -> None:
    """Refuse to free a base that linked clones have in their names; those of LVM-thin stand on their own.

    Raises:
        PveError: It is in use.
    """
    _, name = parse_volume_id(volid)
    clones = world.volumes.clones_of(volid, node)
    if any(base_in_name(str(clone["volid"])) is not None for clone in clones):
        raise PveError(f"base volume '{name}' is still in use by linked clones")


def make_base(world: World, volid: str, node: str) -> str:
    """Make a volume the read-only base of a template and return its new id.

    Raises:
        PveError: It has snapshots, or is one already.
    """
    if is_base(volid):
        raise PveError("create_base not possible with base image")
    if snapshots_of(world, volid, node):
        raise PveError("unable to create base volume - found snapshot")
    new = base_volume_id(volid)
    world.volumes.rename(volid, node, new)
    return new


def clone_volume(
    world: World, volid: str, node: str, vmid: int, *, content: str = "images", snapshot: str | None = None
) -> str:
    """Make a linked clone of a base (or of a snapshot) for a guest and return its id.

    Raises:
        PveError: The storage cannot be used.
    """
    base = world.volumes.require(volid, node)
    size = snapshots_of(world, volid, node)[snapshot] if snapshot else int(base["size"])
    storage, base_name = parse_volume_id(volid)
    config = world.storages.require(storage, node)
    new = NewVolume(storage=storage, node=node, vmid=vmid, size=size)
    # A linked clone of a file is a qcow2 file that refers to it.
    refers = type_of(config).files and config["type"] != "btrfs"
    chosen = "qcow2" if refers else str(base["format"])
    linked = linked_volume_id(world, volid, world.volumes.free_name(new, chosen))
    world.volumes.add(
        linked,
        node,
        size,
        content=content,
        format=chosen,
        vmid=vmid,
        parent=base_name,
        borrowed=size,
        image=base.get("image"),
    )
    return linked


def reassign(world: World, volid: str, node: str, vmid: int) -> str:
    """Give a volume to another guest, under a name of that guest, and return its new id."""
    volume = world.volumes.require(volid, node)
    storage, name = parse_volume_id(volid)
    new = NewVolume(storage=storage, node=node, vmid=vmid, size=int(volume["size"]))
    renamed = world.volumes.free_name(new, str(volume["format"]))
    if type_of(world.storages.config(storage)).files:
        renamed = f"{vmid}/{renamed}"
        parts = name.split("/")
        if len(parts) == 4:
            renamed = f"{parts[0]}/{parts[1]}/{renamed}"
    elif "/" in name:
        renamed = f"{name.partition('/')[0]}/{renamed}"
    world.volumes.rename(volid, node, f"{storage}:{renamed}", vmid=vmid)
    return f"{storage}:{renamed}"


def snapshots_of(world: World, volid: str, node: str) -> dict[str, int]:
    """Return the sizes of a volume at its snapshots, the oldest first."""
    return dict(world.store.get("volume_snapshots", _key(world, volid, node)) or {})


def take_snapshot(world: World, volid: str, node: str, name: str) -> None:
    """Remember a volume as it is."""
    size = int(world.volumes.require(volid, node)["size"])
    known = snapshots_of(world, volid, node)
    world.store.put("volume_snapshots", _key(world, volid, node), {**known, name: size})


def drop_snapshot(world: World, volid: str, node: str, name: str) -> None:
    """Forget a snapshot of a volume, if there is one."""
    known = snapshots_of(world, volid, node)
    if known.pop(name, None) is None:
        return
    if known:
        world.store.put("volume_snapshots", _key(world, volid, node), known)
    else:
        world.store.delete("volume_snapshots", _key(world, volid, node))


def copy_snapshots(world: World, source: tuple[str, str], target: tuple[str, str]) -> None:
    """Let a copy on another node (each a volume and its node) have the snapshots of what it is a copy of."""
    known = snapshots_of(world, *source)
    if known:
        world.store.put("volume_snapshots", _key(world, *target), known)


def require_rollback(world: World, volid: str, node: str, name: str) -> None:
    """Refuse to go back to a snapshot that the storage cannot go back to.

    Raises:
        PveError: The volume has none of that name, or the storage goes back to the latest only.
    """
    known = list(snapshots_of(world, volid, node))
    storage, volume = parse_volume_id(volid)
    if name not in known:
        raise PveError(f"can't rollback, snapshot '{name}' does not exist on '{volid}'")
    if known[-1] != name and world.storages.config(storage)["type"] in _LATEST_ONLY:
        raise PveError(f"can't rollback, '{name}' is not most recent snapshot on '{volume}'")


def roll_back(world: World, volid: str, node: str, name: str) -> None:
    """Make a volume what it was at a snapshot.

    Raises:
        PveError: That is not possible.
    """
    require_rollback(world, volid, node, name)
    volume = world.volumes.require(volid, node)
    size = snapshots_of(world, volid, node)[name]
    if size != volume["size"]:
        world.store.put("volumes", _key(world, volid, node), {**volume, "size": size})


def _key(world: World, volid: str, node: str) -> str:
    storage, _ = parse_volume_id(volid)
    return f"{world.storages.scope(storage, node)}|{volid}"
