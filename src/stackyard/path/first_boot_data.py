"""What guests were created from: their image and their data for cloud-init, and what of it changed since.

An image is copied when a virtual machine is created, and cloud-init reads its data when the guest starts. To
change either in the input changes nothing in a guest that runs: a plan says so, and continues saying so until
the guest has been started again, or created again.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired import DeclaredFile, Vm
from stackyard.engine.changes import Action
from stackyard.guard import Finding
from stackyard.guard.subjects import is_guest
from stackyard.render.references import address_of, data_addresses

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stackyard.desired import Desired, Guest
    from stackyard.engine.changes import Changes
    from stackyard.guard import Cluster, ClusterGuest
    from stackyard.path.known_state import KnownState
    from stackyard.state.targets import TargetRecord

__all__ = ["NOT_APPLIED", "data_notes", "keep_images", "next_boots"]

OTHER_IMAGE = Kind(
    code="W-GUARD-OTHER-IMAGE",
    summary="A guest was created from another image than the input says",
    remedy="Write the old image back; or create the guest again and lose its disks, "
    "with --recreate NAME --allow-destroy NAME.",
    severity=Severity.WARNING,
)
OTHER_DATA = Kind(
    code="W-GUARD-OTHER-DATA",
    summary="Data for cloud-init has changed since the guest started",
    remedy="Shut the guest down and start it from Proxmox, when it suits: cloud-init runs again, adds users "
    "and packages, removes none, and may make new SSH host keys. `--recreate NAME --allow-destroy NAME` "
    "creates the guest again.",
    severity=Severity.WARNING,
)
# What no apply changes in guests that exist.
NOT_APPLIED = (OTHER_IMAGE, OTHER_DATA)

_DATA, _WRITTEN, _WRITTEN_AT = "data", "written", "written_at"


def keep_images(
    desired: Desired, known: KnownState, exists: Collection[int], recreated: Collection[str]
) -> tuple[Desired, tuple[Finding, ...]]:
    """Return the model with each existing disk made from the image that it was created from, and say so.

    Args:
        desired: The model.
        known: What the state has.
        exists: The ids of the guests that the cluster has.
        recreated: Names of guests that are created again, from what the input says.
    """
    volumes = {file.key: file.volume_id for file in desired.files}
    notes: list[Finding] = []

    def keep(vm: Vm) -> Vm:
        sources = {} if vm.name in recreated else _list_known_sources(vm, known, exists)
        changed = {}
        for index, disk in enumerate(vm.disks):
            wanted = volumes.get(disk.file.file) if isinstance(disk.file, DeclaredFile) else disk.file
            was = sources.get(disk.interface)
            if was and wanted is not None and was != wanted:
                changed[index] = disk.model_copy(update={"file": was})
                said = f"{vm.name}: {disk.interface} was created from {was} and stays unchanged"
                detail = f"{said}; the input says {wanted}."
                notes.append(Finding(kind=OTHER_IMAGE, detail=detail, subject=vm.name))
        if not changed:
            return vm
        return vm.model_copy(update={"disks": tuple(changed.get(i, disk) for i, disk in enumerate(vm.disks))})

    vms = tuple(map(keep, desired.vms))
    return (desired.model_copy(update={"vms": vms}) if notes else desired), tuple(notes)


def _list_known_sources(vm: Vm, known: KnownState, exists: Collection[int]) -> dict[str, str]:
    """Return the images that the disks of a guest were made from, by interface; nothing where it is gone."""
    instance = known.guests.get(address_of(vm))
    if instance is None or instance.attributes.get("vm_id") not in exists:
        return {}
    disks = instance.attributes.get("disk")
    rows = [row for row in disks if isinstance(row, dict)] if isinstance(disks, list) else []
    return {
        str(row.get("interface")): source
        for row in rows
        if isinstance(source := row.get("import_from"), str) and source
    }


def _fingerprint(guest: Guest) -> str:
    if not isinstance(guest, Vm) or guest.cloud_init is None:
        return ""
    return hashlib.sha256(guest.cloud_init.model_dump_json().encode()).hexdigest()


def data_notes(
    desired: Desired, known: KnownState, cluster: Cluster, record: TargetRecord | None
) -> Iterator[Finding]:
    """Report guests that have not read what the input gives them."""
    boots = {} if record is None else record.first_boots
    running = {guest.vm_id: guest for guest in cluster.guests}
    for guest in desired.guests:
        boot, instance = boots.get(guest.key), known.guests.get(address_of(guest))
        if boot is None or instance is None or boot.get(_DATA) == _fingerprint(guest):
            continue
        now = running.get(instance.attributes.get("vm_id") or 0)
        if not _has_read(boot, _fingerprint(guest), now):
            detail = f"{guest.name} has not read the users, keys, packages and commands that the input says."
            yield Finding(kind=OTHER_DATA, detail=detail)


def _has_read(boot: Mapping[str, str], wanted: str, now: ClusterGuest | None) -> bool:
    """Return whether a guest was started after its data was written."""
    if boot.get(_WRITTEN) != wanted or now is None or not now.uptime_s:
        return False
    return time.time() - now.uptime_s > float(boot.get(_WRITTEN_AT, "inf"))


def next_boots(
    desired: Desired,
    changes: Changes,
    cluster: Cluster,
    boots: Mapping[str, Mapping[str, str]],
    began_at: float,
) -> dict[str, dict[str, str]]:
    """Return what is known of each guest's data after a plan was applied.

    Args:
        desired: What was applied.
        changes: What the plan did.
        cluster: What the cluster had before.
        boots: What was known before.
        began_at: When the apply began, in seconds since 1970; a guest started since has read its data.
    """
    touched = [change for change in changes.planned if change.action not in (Action.NOTHING, Action.READ)]
    new = {
        change.address
        for change in touched
        if is_guest(change) and change.action in (Action.CREATE, Action.REPLACE)
    }
    rewritten = {
        change.address
        for change in touched
        if not is_guest(change) or any(one.path[0] == "initialization" for one in change.differences)
    }
    running = {guest.vm_id: guest for guest in cluster.guests}
    found: dict[str, dict[str, str]] = {}
    for guest in desired.guests:
        wanted, own = _fingerprint(guest), address_of(guest)
        is_rewritten = not rewritten.isdisjoint((own, *data_addresses(guest.key)))
        boot = dict(boots.get(guest.key) or ({_DATA: ""} if is_rewritten else {_DATA: wanted}))
        if own in new or _has_read(boot, wanted, running.get(guest.vm_id or 0)):
            boot = {_DATA: wanted}
        elif is_rewritten and boot[_DATA] != wanted:
            boot |= {_WRITTEN: wanted, _WRITTEN_AT: str(began_at)}
        found[guest.key] = boot
    return found
