"""`proxmox_backup_job`: a schedule by which guests are backed up."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from stackyard.provider.checks import between, one_of
from stackyard.provider.crud import Collection
from stackyard.provider.fields import FLAG, NUMBER, TEXT, Field
from stackyard.provider.resources.jobs.backup_forms import (
    FLEECING,
    LIST,
    PATHS,
    PERFORMANCE,
    RETENTION,
    as_sent,
    keep_empty,
)
from stackyard.provider.schema import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.kinds import Work
    from stackyard.provider.plan import PlanDraft
    from stackyard.provider.values import Object

__all__ = ["BACKUP_FIELDS", "PATH", "RESOURCE"]

PATH = "/cluster/backup"
_KEPT_FLAGS = ("enabled", "all", "remove", "protected", "repeat_missed", "stdexcludes")
_KEPT_TEXTS = ("mode", "compress", "mailnotification")
_KEPT_NUMBERS = ("bwlimit", "ionice")
_TEXTS = ("node", "starttime", "notes_template", "script", "pool", "pbs_change_detection_mode", "tmpdir")
_NESTED = ("fleecing", "performance")
_NUMBERS = ("maxfiles", "pigz", "zstd", "lockwait", "stopwait")


def _key(attribute: str) -> str:
    return attribute.replace("_", "-")


BACKUP_FIELDS = (
    Field(attribute="schedule", form=TEXT, clears=False),
    Field(attribute="storage", form=TEXT, clears=False),
    *(Field(attribute=name, key=_key(name), form=FLAG) for name in _KEPT_FLAGS),
    *(Field(attribute=name, form=TEXT) for name in _KEPT_TEXTS),
    *(Field(attribute=name, form=NUMBER) for name in _KEPT_NUMBERS),
    *(Field(attribute=name, key=_key(name), form=TEXT) for name in _TEXTS),
    *(Field(attribute=name, form=NUMBER) for name in _NUMBERS),
    Field(attribute="vmid", form=LIST, off=[]),
    Field(attribute="mailto", form=LIST, off=[]),
    Field(attribute="exclude_path", key="exclude-path", form=PATHS, off=[]),
    Field(attribute="prune_backups", key="prune-backups", form=RETENTION, off={}),
    Field(attribute="fleecing", form=FLEECING),
    Field(attribute="performance", form=PERFORMANCE),
)


def _own_state(known: Object, found: Mapping[str, Any]) -> Object:
    kept = {
        field.attribute: keep_empty(known.get(field.attribute))
        for field in BACKUP_FIELDS
        if found.get(field.name) is None
    }
    state = {name: value for name, value in kept.items() if value is not None}
    # With a choice of guests, Proxmox drops that not all of them are meant.
    if found.get("all") is None and known.get("all") is False:
        state["all"] = False
    return state


def _plan(draft: PlanDraft) -> None:
    """Let a choice of guests take the place of all guests, which a plan would keep."""
    if not draft.is_configured("all") and (draft.is_configured("vmid") or draft.is_configured("pool")):
        draft.values["all"] = None


_JOBS = Collection(path=PATH, key="id", fields=BACKUP_FIELDS, own_state=_own_state, current=as_sent)


async def _update(work: Work, prior: Object, planned: Object) -> Object:
    empty = {name: found for name in _NESTED if (found := keep_empty(planned.get(name))) is not None}
    # An object without content is nothing to Proxmox: what was there has to go.
    state = await _JOBS.update(work, prior, {**planned, **dict.fromkeys(empty)})
    return {**state, **empty}


_JOB = _JOBS.resource(
    ("proxmox_backup_job",),
    rules={
        "id": Rule(replace=True),
        **{name: Rule(keep=True) for name in (*_KEPT_FLAGS, "bwlimit", "prune_backups", "fleecing.enabled")},
        "mode": Rule(keep=True, check=one_of("snapshot", "suspend", "stop")),
        "compress": Rule(keep=True, check=one_of("0", "1", "gzip", "lzo", "zstd")),
        "mailnotification": Rule(keep=True, check=one_of("always", "failure")),
        "ionice": Rule(keep=True, check=between(0, 8)),
        "pbs_change_detection_mode": Rule(check=one_of("legacy", "data", "metadata")),
    },
    plan=_plan,
)

RESOURCE = dataclasses.replace(_JOB, update=_update)
