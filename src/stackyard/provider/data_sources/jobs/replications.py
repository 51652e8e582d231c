"""`proxmox_replications`: every replication job that the caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.jobs.replication import JOB_FIELDS, PATH, job_values

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=_SAME_PICTURE_S)
    jobs = [
        {
            "id": row["id"],
            **values(JOB_FIELDS, row),
            **job_values(row),
            "remove_job": row.get("remove_job"),
        }
        for row in listed
    ]
    return {**config, "replications": jobs}


DATA_SOURCE = DataSource(names=both_names("replications"), read=_read)
