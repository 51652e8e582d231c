"""`proxmox_replications`: every replication job that the caller may see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.jobs.replication import JOB_FIELDS, PATH, job_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


# In this list, bpg has no null: what Proxmox does not say is empty, zero or false.
_EMPTY = {"comment": "", "disable": False, "rate": 0, "remove_job": "", "schedule": "", "source": ""}


async def _read(work: Work, config: Object) -> Object:
    listed = await work.client.get(PATH, max_age_s=_SAME_PICTURE_S)
    return {**config, "replications": [_list_values(row) for row in listed]}


def _list_values(row: Mapping[str, Any]) -> Object:
    told = {**values(JOB_FIELDS, row), **job_values(row), "remove_job": row.get("remove_job")}
    return {"id": row["id"], **{key: _EMPTY.get(key) if told[key] is None else told[key] for key in told}}


DATA_SOURCE = DataSource(names=both_names("replications"), read=_read)
