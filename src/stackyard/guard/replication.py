"""Whether guests can be replicated: their disks are on ZFS, here and on the node that keeps the copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.desired import Vm
from stackyard.guard.findings import Finding
from stackyard.guard.placement import NO_NODE, NO_STORAGE
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Guest
    from stackyard.guard.cluster import Cluster
    from stackyard.guard.facts import Facts
    from stackyard.guard.implied import ImpliedCalls

__all__ = ["find_replications"]

NOT_ZFS = Kind(
    code="E-GUARD-REPLICATION",
    summary="A disk cannot be replicated",
    remedy="Put it onto a ZFS storage, which both nodes have; or write `replicate: false` to the disk.",
)
_ZFS = "zfspool"
_Field = tuple[str | int, ...]


def find_replications(implied: ImpliedCalls, facts: Facts) -> Iterator[Finding]:
    """Report replications that Proxmox refuses: no such node, or a storage that cannot."""
    cluster = facts.cluster
    for guest in implied.desired.guests:
        for place, job in enumerate(guest.replication):
            if cluster.node(job.target) is None:
                known = ", ".join(node.name for node in cluster.nodes) or "none"
                detail = (
                    f"There is no node {job.target} to replicate {guest.name} to; the cluster has {known}."
                )
                field = ("replication", place, "target")
                yield Finding(kind=NO_NODE, detail=detail, label=label(guest.key), field=field)
            else:
                yield from _find_storages(guest, job.target, cluster)


def _find_storages(guest: Guest, target: str, cluster: Cluster) -> Iterator[Finding]:
    for datastore, field in _list_replicated(guest):
        here, there = cluster.storage(guest.node, datastore), cluster.storage(target, datastore)
        # What is shared is on the other node anyway, and one that is not seen has a finding of its own.
        if here is None or here.is_shared:
            continue
        if here.type not in ("", _ZFS):
            detail = f"{guest.name} has a disk on {datastore}, which is {here.type} and no ZFS."
            yield Finding(kind=NOT_ZFS, detail=detail, label=label(guest.key), field=field)
        elif there is None:
            detail = f"{guest.name} has a disk on {datastore}, which {target} does not have for its copy."
            yield Finding(kind=NO_STORAGE, detail=detail, label=label(guest.key), field=field)


def _list_replicated(guest: Guest) -> Iterator[tuple[str, _Field]]:
    """Return the datastores of disks that are replicated, with the field that says so."""
    if isinstance(guest, Vm):
        for index, disk in enumerate(guest.disks):
            if disk.replicate:
                yield disk.datastore, ("disks", index, "datastore")
        return
    if guest.root_disk is not None and guest.root_disk.replicate is not False:
        yield guest.root_disk.datastore, ("root_disk", "datastore")
    for index, mount in enumerate(guest.mounts):
        if mount.replicate and mount.size_gib is not None:
            yield mount.volume, ("mounts", index, "volume")
