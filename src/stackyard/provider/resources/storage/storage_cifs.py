"""`proxmox_storage_cifs`: a storage on a share of an SMB server."""

from __future__ import annotations

from stackyard.provider.fields import FLAG, TEXT, Field
from stackyard.provider.resources.storage.storages import FOLDER_RULES, FOLDERS, StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

_FIXED = ("server", "share", "username", "domain")

RESOURCE = StorageKind(
    kind="cifs",
    type="cifs",
    fields=(
        *(fixed(name) for name in _FIXED),
        fixed("subdirectory", "subdir"),
        Field(attribute="password", form=TEXT, secret=True, create_only=True, clears=False),
        Field(
            attribute="snapshot_as_volume_chain",
            key="snapshot-as-volume-chain",
            form=FLAG,
            create_only=True,
            clears=False,
        ),
        Field(attribute="options", form=TEXT),
        Field(attribute="preallocation", form=TEXT),
        *FOLDERS,
    ),
    rules={
        **{name: Rule(replace=True) for name in (*_FIXED, "subdirectory", "password")},
        "snapshot_as_volume_chain": Rule(replace=True),
        **FOLDER_RULES,
    },
    flags=("snapshot_as_volume_chain",),
    backups=True,
).resource()
