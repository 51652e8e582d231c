"""`proxmox_replication`: a job that keeps copies of a guest's volumes on another node."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from stackyard.base.backoff import Backoff
from stackyard.base.errors import StackyardError
from stackyard.fields.properties import flag
from stackyard.provider.checks import at_least, matches, one_of
from stackyard.provider.create_once import note_seen
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.kinds import both_names
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.values import Object

__all__ = ["IS_JOB_ID", "JOB_FIELDS", "PATH", "RESOURCE", "ReplicationRemovalError", "job_values"]

PATH = "/cluster/replication"
IS_JOB_ID = matches(r"[0-9]+-[0-9]+", "be GUEST-NUMBER, such as 100-0")
JOB_FIELDS = (
    Field(attribute="type", form=TEXT, create_only=True, clears=False),
    Field(attribute="target", form=TEXT, create_only=True, clears=False),
    Field(attribute="comment", form=TEXT),
    Field(attribute="disable", form=FLAG, off=False),
    Field(attribute="rate", form=NUMBER),
    Field(attribute="schedule", form=TEXT),
)
# The scheduler of a node looks at its jobs every minute, and removes the copies of a job with it.
_REMOVAL_S = 900.0
_BACKOFF = Backoff(0.05, 2.0, growth=1.5)
_MARK = "remove_job"


class ReplicationRemovalError(StackyardError):
    """A replication job is marked for removal, and its node does not remove it."""

    code = "E-PROVIDER-REPLICATION-REMOVAL"
    summary = "A replication job is not removed"
    default_remedy = (
        "Look at the job on the node of its guest (`pvesr status`): it is removed when the node and the "
        "target answer. `pvesr delete ID --force` removes the job and leaves the copies. Then repeat."
    )


def job_values(found: Mapping[str, Any]) -> Object:
    """Return what Proxmox says of a job beside what can be configured."""
    numbers = {name: found.get(name) for name in ("guest", "jobnum")}
    return {
        **{name: None if value is None else int(value) for name, value in numbers.items()},
        "source": found.get("source"),
    }


def _own_state(known: Object, found: Mapping[str, Any]) -> Object:
    return {**job_values(found), "disable": flag(found.get("disable"))}


def _current(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return None if row.get(_MARK) else row


_JOBS = Collection(
    path=PATH,
    key="id",
    fields=JOB_FIELDS,
    own_state=_own_state,
    filtered=True,
    current=_current,
)


async def _await_removal(work: Work, state: Object) -> None:
    """Wait until a job that is marked for removal is gone."""
    deadline, pauses = time.monotonic() + _REMOVAL_S, iter(_BACKOFF)
    while any(row.get("id") == state["id"] and row.get(_MARK) for row in await work.client.get(PATH)):
        if time.monotonic() >= deadline:
            raise ReplicationRemovalError(
                f"The replication job {state['id']} was marked for removal {_REMOVAL_S:g} s ago, "
                "and is still there."
            )
        await work.client.pause(next(pauses))
    work.client.expire_reads()


async def _create(work: Work, planned: Object) -> Object:
    # Somebody may have removed it a moment ago: until it is gone, its id is taken.
    await _await_removal(work, planned)
    return await _JOBS.create(work, planned)


async def _delete(work: Work, state: Object) -> None:
    await note_seen(work, str(state["id"]))
    if await _JOBS.find(work, state) is not None:
        await work.client.delete(_JOBS.path_of(state))
    await _await_removal(work, state)


RESOURCE = dataclasses.replace(
    _JOBS.resource(
        both_names("replication"),
        rules={
            "id": Rule(replace=True, check=IS_JOB_ID),
            "target": Rule(replace=True),
            "type": Rule(replace=True, check=one_of("local")),
            "disable": Rule(default=False),
            "rate": Rule(fraction=True, check=at_least(1)),
            "schedule": Rule(keep=True),
        },
    ),
    create=_create,
    delete=_delete,
)
