"""What can be done with a volume: snapshots, linked clones, templates. It depends on the type of its storage.

The tables follow Proxmox's storage plugins. A linked clone is named after what it stands on: on some storages
with the base in its name (`base-100-disk-0/vm-101-disk-0`), on others alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pvelab.world.storage.storages import type_of
from pvelab.world.storage.volumes import parse_volume_id

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["base_volume_id", "has_feature", "is_base", "linked_volume_id", "name_in_format", "owner_of"]

_ANY = frozenset(("raw", "qcow2", "vmdk", "subvol"))
_IMAGES = frozenset(("raw", "qcow2", "vmdk"))
_QCOW2 = frozenset(("qcow2",))
_SIMPLE = frozenset(("raw", "qcow2", "subvol"))

# Feature, then state of the volume (current, base or snap), then the formats that have it.
Table = Mapping[str, Mapping[str, frozenset[str]]]
_FILES: Table = {
    "snapshot": {"current": _QCOW2, "snap": _QCOW2},
    "clone": {"base": _IMAGES},
    "template": {"current": _ANY},
    "copy": {"base": _IMAGES, "current": _IMAGES, "snap": _QCOW2},
    "rename": {"current": _IMAGES},
}
_BTRFS: Table = {
    "snapshot": {"current": _SIMPLE, "snap": _SIMPLE},
    "clone": {"base": _ANY, "current": frozenset(("raw",)), "snap": frozenset(("raw",))},
    "template": {"current": _ANY},
    "copy": {"base": _ANY, "current": _ANY, "snap": _SIMPLE},
    "rename": {"current": _IMAGES},
}
_LVM: Table = {
    "copy": {"base": _SIMPLE, "current": _SIMPLE, "snap": _QCOW2},
    "rename": {"current": _SIMPLE},
    "snapshot": {"current": _QCOW2, "snap": _QCOW2},
}
_THIN: Table = {
    "snapshot": {"current": _ANY},
    "clone": {"base": _ANY, "snap": _ANY},
    "template": {"current": _ANY},
    "copy": {"base": _ANY, "current": _ANY, "snap": _ANY},
    "rename": {"current": _ANY},
}
_ZFS: Table = {
    "snapshot": {"current": _ANY, "snap": _ANY},
    "clone": {"base": _ANY},
    "template": {"current": _ANY},
    "copy": {"base": _ANY, "current": _ANY},
    "replicate": {"base": _ANY, "current": _ANY},
    "rename": {"current": _ANY},
}
_RBD: Table = {**_THIN, "snapshot": {"current": _ANY, "snap": _ANY}}
_ISCSI: Table = {"copy": {"current": _ANY}}
_BY_TYPE: Mapping[str, Table] = {
    **{kind: _FILES for kind in ("dir", "nfs", "cifs", "cephfs")},
    "btrfs": _BTRFS,
    "lvm": _LVM,
    "lvmthin": _THIN,
    "zfspool": _ZFS,
    "zfs": {key: value for key, value in _ZFS.items() if key not in ("replicate", "rename")},
    "rbd": _RBD,
    "iscsi": _ISCSI,
    "iscsidirect": _ISCSI,
}
# A linked clone of a file is always a qcow2 file.
_AS_QCOW2 = frozenset(("dir", "nfs", "cifs", "cephfs"))
_NAME = re.compile(r"(vm|base|subvol|basevol)-(\d+)-.+")
_BASES = {"vm": "base", "subvol": "basevol"}


def has_feature(
    world: World,
    feature: str,
    volume: Document,
    *,
    snapshot: bool = False,
    formats: frozenset[str] | None = None,
) -> bool:
    """Return whether something can be done with a volume.

    Args:
        world: The lab.
        feature: `snapshot`, `clone`, `template`, `copy`, `rename` or `replicate`.
        volume: The volume.
        snapshot: Whether it is about a snapshot of the volume.
        formats: The formats that the guest can use, where a linked clone is to be one of these.
    """
    config = world.storages.config(str(volume["storage"]))
    if feature == "clone" and formats is not None and "qcow2" not in formats and config["type"] in _AS_QCOW2:
        return False
    state = "snap" if snapshot else "base" if is_base(str(volume["volid"])) else "current"
    table = _BY_TYPE.get(str(config["type"]), {})
    return str(volume.get("format", "raw")) in table.get(feature, {}).get(state, frozenset())


def is_base(volid: str) -> bool:
    """Return whether a volume belongs to a template."""
    return _own_name(volid).startswith(("base-", "basevol-"))


def owner_of(volid: str) -> int | None:
    """Return the guest that a volume is named for, or None."""
    found = _NAME.fullmatch(_own_name(volid))
    return int(found[2]) if found else None


def base_volume_id(volid: str) -> str:
    """Return the name that a volume gets when its guest becomes a template."""
    head, slash, name = volid.rpartition("/")
    if not slash:
        head, slash, name = volid.partition(":")[0], ":", volid.partition(":")[2]
    kind, _, rest = name.partition("-")
    return f"{head}{slash}{_BASES.get(kind, kind)}-{rest}"


def name_in_format(volid: str, chosen: str, *, files: bool) -> str:
    """Return the name of a volume's copy in a format, on a storage that keeps files or one that does not."""
    kind, _, rest = _own_name(volid).partition(".")[0].partition("-")
    if chosen == "subvol":
        kind = {"vm": "subvol", "base": "basevol"}.get(kind, kind)
    else:
        kind = {"subvol": "vm", "basevol": "base"}.get(kind, kind)
    return f"{kind}-{rest}.{chosen}" if files else f"{kind}-{rest}"


def linked_volume_id(world: World, base: str, name: str) -> str:
    """Return the id of a linked clone with a name, of a base volume."""
    storage, base_name = parse_volume_id(base)
    config = world.storages.config(storage)
    owner = owner_of(f"{storage}:{name}")
    if config["type"] == "lvmthin":
        return f"{storage}:{name}"
    if type_of(config).files and config["type"] != "btrfs":
        plain = name.rpartition(".")[0] or name
        return f"{storage}:{base_name}/{owner}/{plain}.qcow2"
    own = base_name.rpartition("/")[2]
    return f"{storage}:{owner}/{name}" if config["type"] == "btrfs" else f"{storage}:{own}/{name}"


def _own_name(volid: str) -> str:
    return volid.partition(":")[2].rpartition("/")[2]
