"""Whether storages fit the cluster: no other is in the same place, and backup jobs use one for backups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.guard.facts import ApiRead
from stackyard.guard.findings import Finding
from stackyard.render.objects import address_of_object
from stackyard.render.references import short_type
from stackyard.sources.hypervisor.checks.storages import BAD_CONTENT, SAME_PLACE, shared_place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.desired import ClusterObject
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["ask_storage_places", "find_storage_places"]

_STORAGE = "storage_"
_STORAGES = ApiRead("/storage")
# What Proxmox calls a type and its settings, where files have other words.
_TYPES = {"dir": "directory"}
_SETTINGS = {"pool": "zfs_pool", "vgname": "volume_group", "thinpool": "thin_pool", "subdir": "subdirectory"}
_KNOWN = frozenset({"directory", "nfs", "cifs", "lvm", "lvmthin", "zfspool", "pbs"})


def _list_new(implied: ImpliedCalls) -> Iterator[ClusterObject]:
    for one in implied.desired.objects:
        is_new = address_of_object(one.key) not in implied.unchanged
        if is_new and short_type(one.key.type).startswith(_STORAGE):
            yield one


def _list_jobs(implied: ImpliedCalls) -> Iterator[ClusterObject]:
    for one in implied.desired.objects:
        if short_type(one.key.type) == "backup_job" and address_of_object(one.key) not in implied.unchanged:
            yield one


def ask_storage_places(implied: ImpliedCalls, cluster: Cluster) -> Iterator[ApiRead]:
    """Ask for the storages of the cluster."""
    del cluster
    if any(_list_new(implied)) or any(_list_jobs(implied)):
        yield _STORAGES


def find_storage_places(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report storages in the same place as one that the target does not have, and those without backups."""
    own = {one.key.name for one in implied.desired.objects if short_type(one.key.type).startswith(_STORAGE)}
    own |= {name for kind, _, name in implied.leaving if kind.startswith(_STORAGE)}
    there = [row for row in facts.rows(_STORAGES) if str(row.get("storage")) not in own]
    for job in _list_jobs(implied):
        for row in there:
            contents = sorted(str(row.get("content") or "").split(","))
            if row.get("storage") == job.attributes.get("storage") and "backup" not in contents:
                detail = f"The backup job {job.key.name} needs `backup` on {row['storage']} of the cluster, "
                detail += f"which has {', '.join(contents)}."
                label = address_of_object(job.key)
                yield Finding(kind=BAD_CONTENT, detail=detail, label=label, field=("storage",))
    known = {str(row.get("storage")) for row in facts.rows(_STORAGES)}
    for one in _list_new(implied):
        values = {**one.attributes, "type": short_type(one.key.type).removeprefix(_STORAGE)}
        # One that is there already stays where it is.
        for row in there if one.key.name not in known else ():
            place = _shared_place(row, one.key.name, values)
            if place and _share_a_node(row, values):
                detail = f"{row['storage']} of the cluster and {one.key.name} are both {place}."
                yield Finding(kind=SAME_PLACE, detail=detail, label=address_of_object(one.key))


def _shared_place(row: Mapping[str, Any], name: str, values: Mapping[str, Any]) -> str:
    type_ = _TYPES.get(str(row.get("type")), str(row.get("type")))
    theirs = {_SETTINGS.get(key, key): value for key, value in row.items()} | {"type": type_}
    try:
        return shared_place((str(row["storage"]), theirs), (name, values)) if type_ in _KNOWN else ""
    except KeyError:
        # Proxmox does not say where it is.
        return ""


def _share_a_node(row: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    theirs = {one for one in str(row.get("nodes") or "").split(",") if one}
    mine = set(values.get("nodes") or ())
    return not theirs or not mine or bool(theirs & mine)
