"""`proxmox_storage_zfspool`: a storage in a ZFS pool of the nodes."""

from __future__ import annotations

from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.resources.storage.storages import StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = StorageKind(
    kind="zfspool",
    type="zfspool",
    fields=(
        fixed("zfs_pool", "pool"),
        Field(attribute="thin_provision", key="sparse", form=FLAG),
        Field(attribute="blocksize", form=TEXT),
    ),
    rules={"zfs_pool": Rule(replace=True)},
    flags=("thin_provision",),
).resource()
