"""`proxmox_storage_directory`: a storage in a directory of the nodes."""

from __future__ import annotations

from stackyard.provider.fields import TEXT, Field
from stackyard.provider.resources.storage.storages import FOLDER_RULES, FOLDERS, StorageKind, fixed
from stackyard.provider.schema import Rule

__all__ = ["RESOURCE"]

RESOURCE = StorageKind(
    kind="directory",
    type="dir",
    fields=(fixed("path"), Field(attribute="preallocation", form=TEXT), *FOLDERS),
    rules={"path": Rule(replace=True), "shared": Rule(default=True), **FOLDER_RULES},
    shares=True,
    backups=True,
).resource()
