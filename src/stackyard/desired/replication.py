"""Replication: copies of a guest's disks that another node keeps."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from stackyard.desired.schedule import Schedule
from stackyard.desired.values import Line, Many, Value

__all__ = ["Replication", "Replications"]


class Replication(Value):
    """A job that copies a guest's disks to another node, as often as its schedule says."""

    # What Proxmox calls the other node.
    target: Line
    schedule: Schedule = "*/15"
    # Megabytes a second; None: as fast as it goes.
    rate: Annotated[float, Field(ge=1)] | None = None
    comment: Line | None = None
    disable: bool = False
    # The second half of its id, 100-0; None: its place in the list.
    number: Annotated[int, Field(ge=0, le=999_999_999)] | None = None


def _list_jobs(value: Any) -> Any:
    """Take one target, or one job, for a list of them."""
    jobs = [value] if isinstance(value, str | dict | Replication) else value
    if not isinstance(jobs, list | tuple):
        return jobs
    return [{"target": job} if isinstance(job, str) else job for job in jobs]


_Short = Line | Replication
Replications = Annotated[
    Many[Replication],
    BeforeValidator(_list_jobs, json_schema_input_type=_Short | tuple[_Short, ...]),
]
