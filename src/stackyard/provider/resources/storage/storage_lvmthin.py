"""`proxmox_storage_lvmthin`: a storage in a thin pool of a volume group."""

from __future__ import annotations

from stackyard.provider.resources.storage.storages import StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = StorageKind(
    kind="lvmthin",
    type="lvmthin",
    fields=(fixed("volume_group", "vgname"), fixed("thin_pool", "thinpool")),
    rules={"volume_group": Rule(replace=True), "thin_pool": Rule(replace=True)},
).resource()
