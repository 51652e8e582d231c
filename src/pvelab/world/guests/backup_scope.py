"""Which guests a backup job is for, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.world.world import World

__all__ = ["list_included_guests"]


def list_included_guests(world: World, job: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the guests of a job by node; those that do not exist (any more) under the empty name.

    Raises:
        PveError: The job excludes what is no guest.
    """
    if job.get("pool"):
        members = world.pools.members(str(job["pool"])).values()
        chosen = [int(member["vmid"]) for member in members if "vmid" in member]
    elif job.get("vmid"):
        chosen = [int(vmid) for vmid in split_list(str(job["vmid"]))]
    elif job.get("all"):
        excluded = set(split_list(str(job.get("exclude", ""))))
        for name in excluded:
            if not name.isdecimal():
                raise PveError(f"ERROR: strange VM ID '{name}'")
        chosen = [int(vmid) for vmid in world.guests.all() if vmid not in excluded]
    else:
        chosen = []
    found: dict[str, list[int]] = {}
    for vmid in sorted(set(chosen)):
        guest = world.guests.get(vmid)
        found.setdefault("" if guest is None else str(guest["node"]), []).append(vmid)
    if job.get("node"):
        found = {node: vmids for node, vmids in found.items() if node in ("", job["node"])}
    return found
