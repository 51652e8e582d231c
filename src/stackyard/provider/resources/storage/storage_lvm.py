"""`proxmox_storage_lvm`: a storage in a volume group."""

from __future__ import annotations

from stackyard.provider.fields import FLAG, Field
from stackyard.provider.resources.storage.storages import StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = StorageKind(
    kind="lvm",
    type="lvm",
    fields=(
        fixed("volume_group", "vgname"),
        Field(attribute="wipe_removed_volumes", key="saferemove", form=FLAG, clears=False),
    ),
    rules={
        "volume_group": Rule(replace=True),
        "wipe_removed_volumes": Rule(default=False),
        "shared": Rule(default=False),
    },
    shares=True,
).resource()
