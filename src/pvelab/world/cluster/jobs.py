"""Jobs that name guests, and what becomes of them when a guest goes.

Documents: `backup_jobs/<id>` and `replication_jobs/<vmid>-<number>`, with the fields that the API has; a
replication job has its `guest` too. `replication_state/<vmid>-<number>` is how its last run went, with its
`log` and the `volumes` that are on the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.world.store import Store

__all__ = [
    "BACKUP",
    "REPLICATION",
    "REPLICATION_STATE",
    "check_not_replicated",
    "forget_guest",
    "replicated_volumes",
    "switch_replication",
]

BACKUP, REPLICATION, REPLICATION_STATE = "backup_jobs", "replication_jobs", "replication_state"


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


def replicated_volumes(store: Store, vmid: int, target: str) -> frozenset[str]:
    """Return the volumes of a guest of which a node has a replica."""
    for ident, job in store.items(REPLICATION).items():
        if job["guest"] == vmid and job["target"] == target:
            return frozenset((store.get(REPLICATION_STATE, ident) or {}).get("volumes", ()))
    return frozenset()


def switch_replication(store: Store, vmid: int, node: str) -> None:
    """Turn the replication jobs of a guest round that has come to a node, in the running transaction."""
    for ident, job in list(store.items(REPLICATION).items()):
        source = job.get("source", node)
        if job["guest"] == vmid and source != node:
            target = source if job["target"] == node else job["target"]
            store.put(REPLICATION, ident, {**job, "source": node, "target": target})


def forget_guest(store: Store, vmid: int) -> None:
    """Remove the replication jobs of a guest and take it out of backup jobs, in the running transaction."""
    for ident, job in list(store.items(REPLICATION).items()):
        if job["guest"] == vmid:
            store.delete(REPLICATION, ident)
            store.delete(REPLICATION_STATE, ident)
    for ident, job in list(store.items(BACKUP).items()):
        changed = dict(job)
        for key in ("vmid", "exclude"):
            listed = split_list(str(job.get(key, "")))
            if str(vmid) in listed:
                changed[key] = ",".join(one for one in listed if one != str(vmid))
        if changed != job:
            store.put(BACKUP, ident, {key: value for key, value in changed.items() if value != ""})
