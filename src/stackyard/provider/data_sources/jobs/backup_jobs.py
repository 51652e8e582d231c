"""`proxmox_backup_jobs`: every backup job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource
from stackyard.provider.resources.jobs.backup_forms import as_sent
from stackyard.provider.resources.jobs.backup_job import BACKUP_FIELDS, PATH

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0
_SHOWN = frozenset(
    (
        *("all", "compress", "enabled", "mailnotification", "mailto", "mode", "node", "notes_template"),
        *("pool", "protected", "prune_backups", "schedule", "storage", "vmid"),
    )
)
_FIELDS = tuple(field for field in BACKUP_FIELDS if field.attribute in _SHOWN)


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=_SAME_PICTURE_S)
    rows = sorted(listed, key=lambda row: str(row["id"]))
    jobs = [{"id": row["id"], **values(_FIELDS, as_sent(row))} for row in rows]
    return {**config, "id": "backup_jobs", "jobs": jobs}


DATA_SOURCE = DataSource(names=("proxmox_backup_jobs",), read=_read)
