"""`proxmox_storage_nfs`: a storage on an NFS server."""

from __future__ import annotations

from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.resources.storage.storages import FOLDER_RULES, FOLDERS, StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = StorageKind(
    kind="nfs",
    type="nfs",
    fields=(
        fixed("server"),
        fixed("export"),
        fixed("preallocation"),
        Field(
            attribute="snapshot_as_volume_chain",
            key="snapshot-as-volume-chain",
            form=FLAG,
            create_only=True,
            clears=False,
        ),
        Field(attribute="options", form=TEXT),
        *FOLDERS,
    ),
    rules={
        **{name: Rule(replace=True) for name in ("server", "export", "preallocation")},
        "snapshot_as_volume_chain": Rule(replace=True),
        **FOLDER_RULES,
    },
    flags=("snapshot_as_volume_chain",),
    backups=True,
).resource()
