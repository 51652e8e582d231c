"""Which volumes of a guest are replicated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.mountpoints import mount_keys, parse_mount_point
from pvelab.api.nodes.qemu import drives
from pvelab.server.problems import PveError
from pvelab.world.storage.volume_features import has_feature

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["replicatable_volumes"]


def replicatable_volumes(world: World, guest: Document) -> list[str]:
    """Return the guest's own volumes on local storages that are not kept from replication, in order.

    Raises:
        PveError: One is on a storage that cannot replicate.
    """
    found = []
    for volid in _volumes(world, guest):
        volume = world.volumes.require(volid, str(guest["node"]))
        if not has_feature(world, "replicate", volume):
            raise PveError(f"missing replicate feature on volume '{volid}'")
        found.append(volid)
    return sorted(found)


def _volumes(world: World, guest: Document) -> Iterator[str]:
    for disk in _disks(world, guest["config"], str(guest["type"])):
        volid = str(disk.get("file") or disk.get("volume"))
        if not disk.get("replicate", 1) or ":" not in volid:
            continue
        if not world.storages.is_shared(world.storages.config(volid.partition(":")[0])):
            yield volid


def _disks(world: World, config: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    if kind == "qemu":
        for key in drives.drive_keys(config):
            drive = drives.parse_drive(world.facts, key, str(config[key]))
            if not drives.is_cdrom(drive):
                yield drive
    else:
        for key in mount_keys(config):
            yield parse_mount_point(world.facts, key, str(config[key]))
