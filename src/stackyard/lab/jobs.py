"""Jobs that name guests, and what becomes of them when a guest goes.

Documents: `backup_jobs/<id>` and `replication_jobs/<vmid>-<number>`, with the fields that the API has; a
replication job has its `guest` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.lab.params.texts import split_list
from stackyard.lab.problems import PveError

if TYPE_CHECKING:
    from stackyard.lab.store import Store

__all__ = ["BACKUP", "REPLICATION", "check_not_replicated", "forget_guest"]

BACKUP, REPLICATION = "backup_jobs", "replication_jobs"


def check_not_replicated(store: Store, vmid: int) -> None:
    """Refuse to remove a guest that a replication job is for.

    Raises:
        PveError: Naming the job.
    """
    for ident, job in store.items(REPLICATION).items():
        if job["guest"] == vmid:
            raise PveError(
                f"There is a replication job '{ident}' for guest '{vmid}' - Please remove that first."
            )


def forget_guest(store: Store, vmid: int) -> None:
    """Remove the replication jobs of a guest and take it out of backup jobs, in the running transaction."""
    for ident, job in list(store.items(REPLICATION).items()):
        if job["guest"] == vmid:
            store.delete(REPLICATION, ident)
    for ident, job in list(store.items(BACKUP).items()):
        changed = dict(job)
        for key in ("vmid", "exclude"):
            listed = split_list(str(job.get(key, "")))
            if str(vmid) in listed:
                changed[key] = ",".join(one for one in listed if one != str(vmid))
        if changed != job:
            store.put(BACKUP, ident, {key: value for key, value in changed.items() if value != ""})
