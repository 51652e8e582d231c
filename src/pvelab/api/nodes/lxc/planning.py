"""What a call that makes a container says of its volumes and keys, checked before anything is created."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.mountpoints import MountType
from pvelab.server.problems import PveError, bad_parameter
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call

__all__ = ["NOT_CONFIG", "check_keys", "check_storages", "is_plain", "list_requested_volumes"]

# Parameters of the call that creates a container, not options of the container.
NOT_CONFIG = frozenset(
    (
        *("node", "vmid", "ostemplate", "password", "storage", "force", "restore", "unique", "pool"),
        *("ignore-unpack-errors", "ssh-public-keys", "bwlimit", "start", "ha-managed", "unprivileged"),
    )
)
_SSH_KEY = re.compile(r"(?:\S+ )*?(?:ssh-|ecdsa-|sk-)\S+ [A-Za-z0-9+/]+={0,3}(?: .*)?")


def is_plain(key: str) -> bool:
    """Return whether a parameter is an option that is no volume."""
    return not mountpoints.is_mount_point(key) and not key.startswith("unused")


def list_requested_volumes(given: Mapping[str, Any], storage: str) -> dict[str, str]:
    """Return the mount points to make, those that are a plain number on the default storage.

    Raises:
        PveError: There are mount points but no root.
    """
    volumes = {
        key: f"{storage}:{value}" if re.fullmatch(r"\d+(\.\d+)?", str(value)) else str(value)
        for key, value in given.items()
        if mountpoints.is_mount_point(key)
    }
    if volumes and "rootfs" not in volumes:
        raise PveError("mount points configured, but 'rootfs' not set - aborting")
    return volumes


def check_keys(text: str) -> None:
    """Refuse public keys that are none.

    Raises:
        PveError: A line is no key.
    """
    for line in text.split("\n"):
        if line.strip() and not _SSH_KEY.fullmatch(line.strip()):
            raise PveError("SSH public key validation error")


def check_storages(call: Call, volumes: Mapping[str, str], default: str) -> None:
    """Refuse storages that hold no containers or that the caller may not fill.

    Raises:
        PveError: 400, 403, or what is wrong with the storage.
    """
    used: list[str] = []
    for _, point in mountpoints.each_volume(call.world.facts, volumes):
        volume = str(point["volume"])
        if mountpoints.mount_type(volume) is MountType.VOLUME:
            used.append(parse_volume_id(volume)[0])
        elif not call.is_root:
            raise PveError("Only root can pass arbitrary filesystem paths.")
    for storage in used if volumes else [default]:
        config = call.world.storages.require(storage, call.node)
        if "rootdir" not in call.world.storages.content_types(config):
            raise bad_parameter("storage", f"storage '{storage}' does not support container directories")
        call.check(f"/storage/{storage}", "Datastore.AllocateSpace")
