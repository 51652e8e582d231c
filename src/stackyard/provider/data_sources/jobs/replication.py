"""`proxmox_replication`: one replication job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.fields.properties import flag
from stackyard.provider.fields import values
from stackyard.provider.kinds import DataSource, both_names
from stackyard.provider.resources.jobs.replication import IS_JOB_ID, JOB_FIELDS, PATH, job_values
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["DATA_SOURCE"]

_SAME_PICTURE_S = 1.0


async def _read(work: Work, config: Object) -> Object:
    found = await work.client.get(f"{PATH}/{proxmox.quote(config['id'])}", max_age_s=_SAME_PICTURE_S)
    shown = {**values(JOB_FIELDS, found), **job_values(found)}
    return {**config, **shown, "disable": flag(found.get("disable"))}


DATA_SOURCE = DataSource(names=both_names("replication"), read=_read, rules={"id": Rule(check=IS_JOB_ID)})
