"""What goes: guests, disks, and everything else that a plan would delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.engine.changes import Action
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.subjects import (
    FILES,
    data_files,
    describe,
    is_guest,
    is_snippet,
    name_of,
    owner_of,
    short_kind,
    vm_id_of,
    volume_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stackyard.engine.changes import Change, Changes

__all__ = [
    "ALLOW_DESTROY",
    "ALLOW_DISK_LOSS",
    "FILES",
    "NOTHING_IN_COMMON",
    "describe_cause",
    "find_destruction",
    "find_disk_loss",
    "find_foreign_state",
    "is_file",
    "report_guest",
    "report_object",
]

ALLOW_DESTROY = "--allow-destroy"
# What is an act or a setting: nothing of the user's goes with it, and it can be created again as it was.
_SETTINGS = ("sdn_applier", "haresource", "harule")
# No provider takes the options of a guest's firewall back.
_OPTIONS = "firewall_options"
ALLOW_DISK_LOSS = "--allow-disk-loss"

DESTROYS_GUEST = Kind(
    code="E-GUARD-DESTROYS-GUEST",
    summary="A guest would be destroyed",
    remedy="Keep it in the input; or name it with --allow-destroy.",
)
DESTROYS_PROTECTED = Kind(
    code="E-GUARD-DESTROYS-PROTECTED",
    summary="A protected guest would be destroyed",
    remedy="Keep it in the input; or take its protection off in one apply, and destroy it in the next.",
)
DESTROYS_OBJECT = Kind(
    code="E-GUARD-DESTROYS-OBJECT",
    summary="Something that guests may depend on would be destroyed",
    remedy="Keep it in the input; or name it with --allow-destroy.",
)
LOSES_DISK = Kind(
    code="E-GUARD-LOSES-DISK",
    summary="A guest would lose a disk, or part of one",
    remedy="Keep the disk as it is; or name the guest with --allow-disk-loss.",
)
FIREWALL_STAYS = Kind(
    code="E-GUARD-FIREWALL-STAYS",
    summary="The firewall of a guest stays on without its rules",
    remedy="Apply `firewall: {options: {enabled: false}}` first, and then remove it from the input.",
)
NOTHING_IN_COMMON = Kind(
    code="E-GUARD-NOTHING-IN-COMMON",
    summary="The input has nothing in common with the state",
    remedy="Check that this is the right target and the right input; `stackyard destroy` removes everything.",
)


def find_destruction(
    changes: Changes, spared: Collection[str] = (), *, is_all: bool = False
) -> Iterator[Finding]:
    """Report each thing that would go; what belongs to a guest goes with it.

    Args:
        changes: What the plan does.
        spared: Addresses that are reported elsewhere.
        is_all: Whether the end of everything is meant: files go with the guests then.
    """
    guests = [change for change in changes.planned if is_guest(change) and change.destroys]
    going = {volume for guest in guests for volume in data_files(guest.before).values()}
    gone = {vm_id_of(guest) for guest in guests} - {None}
    for change in changes.planned:
        if not change.destroys or short_kind(change) in _SETTINGS or change.address in spared:
            continue
        if owner_of(change) in gone:
            continue
        if short_kind(change) == _OPTIONS:
            yield from _report_options(change)
            continue
        if is_guest(change):
            yield from report_guest(change)
        elif not _goes_along(change, going, is_all=is_all):
            yield report_object(change)


def _report_options(change: Change) -> Iterator[Finding]:
    """Report a firewall that keeps what reaches a guest out: its options stay when they are not managed."""
    before = change.before or {}
    if before.get("enabled") and change.action is Action.DELETE:
        yield Finding(
            kind=FIREWALL_STAYS,
            detail=f"{describe(change)} stay as they are on the node, with `enabled`: true and the policy "
            f"{before.get('input_policy')} for all that comes in.",
            permit=Permit(option=ALLOW_DESTROY, name=name_of(change)),
            address=change.address,
        )


def is_file(change: Change) -> bool:
    """Return whether a change is about a file in a datastore."""
    return short_kind(change) in FILES


def _goes_along(change: Change, going: Collection[str], *, is_all: bool) -> bool:
    """Return whether something is of no use by itself: a file when all goes, or the data of one guest."""
    # A snippet that is written again is not lost: its text is in the configuration.
    is_rewritten = is_snippet(change) and change.action is Action.REPLACE
    is_used_up = is_snippet(change) and volume_of(change) in going
    # A file whose creation failed is of no use.
    return is_used_up or is_rewritten or (is_file(change) and (is_all or change.is_unfinished))


def report_guest(change: Change) -> Iterator[Finding]:
    """Report a guest that goes."""
    what = "replaced" if change.action is Action.REPLACE else "destroyed"
    if (change.before or {}).get("protection") is True:
        detail = f"{describe(change)} is protected and would be {what}."
        yield Finding(kind=DESTROYS_PROTECTED, detail=detail, address=change.address, label=change.name)
        return
    because = describe_cause(change)
    yield Finding(
        kind=DESTROYS_GUEST,
        detail=f"{describe(change)} would be {what}{because}{_describe_lost_disks(change)}.",
        permit=Permit(option=ALLOW_DESTROY, name=name_of(change)),
        address=change.address,
        label=change.name,
    )


def _describe_lost_disks(change: Change) -> str:
    """Name every disk that goes with a guest, with its size and place."""
    before = change.before or {}
    lost = [
        f"{title} {name}".strip()
        + f" ({_size(disk['size'])} on {disk.get('datastore_id') or disk.get('volume')})"
        for field, key, title in _SORTS
        for name, disk in _by_key(before.get(field), key).items()
        if disk.get("size")
    ]
    return f"; lost with it: {', '.join(lost)}" if lost else ""


def _on(disk: Mapping[str, Any]) -> str:
    place = disk.get("datastore_id") or disk.get("volume")
    return f" on {place}" if isinstance(place, str) else ""


def _size(size: Any) -> str:
    return f"{size} GiB" if isinstance(size, int | float) else str(size)


def describe_cause(change: Change) -> str:
    """Say why something is replaced, as far as that is known."""
    if change.is_unfinished:
        return ", because its creation failed"
    forcing = [difference.name for difference in change.differences if difference.forces_replace]
    return f", because of {', '.join(forcing)}" if forcing else ""


def report_object(change: Change) -> Finding:
    """Report anything else that goes."""
    what = "replaced" if change.action is Action.REPLACE else "destroyed"
    return Finding(
        kind=DESTROYS_OBJECT,
        detail=f"{describe(change)} would be {what}{describe_cause(change)}.",
        permit=Permit(option=ALLOW_DESTROY, name=name_of(change)),
        address=change.address,
    )


def find_disk_loss(changes: Changes) -> Iterator[Finding]:
    """Report updates in place that detach, delete, shrink or move a disk or mount point."""
    for change in changes.planned:
        if change.action is Action.UPDATE and is_guest(change):
            for loss in _list_losses(change.before or {}, change.after or {}):
                yield Finding(
                    kind=LOSES_DISK,
                    detail=f"{describe(change)}: {loss}.",
                    permit=Permit(option=ALLOW_DISK_LOSS, name=name_of(change)),
                    address=change.address,
                    label=change.name,
                )


# How the disks of each sort are distinguished, and where their place and size are.
_SORTS = (
    ("disk", "interface", "disk"),
    ("efi_disk", None, "EFI disk"),
    ("tpm_state", None, "TPM state"),
    ("mount_point", "path", "mount point"),
)


def _list_losses(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for field, key, title in _SORTS:
        old, new = _by_key(before.get(field), key), _by_key(after.get(field), key)
        for name, disk in old.items():
            label = f"{title} {name}".strip()
            if name not in new:
                yield f"the {label} would be removed"
            else:
                yield from _list_regressions(label, disk, new[name])


def _by_key(disks: Any, key: str | None) -> dict[str, Mapping[str, Any]]:
    if not isinstance(disks, list):
        return {}
    return {str(disk.get(key, "")) if key else "": disk for disk in disks if isinstance(disk, dict)}


def _list_regressions(label: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for place in ("datastore_id", "volume"):
        if place in old and isinstance(new.get(place), str) and old[place] != new[place]:
            yield f"the {label} would move from {old[place]} to {new[place]}"
    before, after = _gib(old.get("size")), _gib(new.get("size"))
    if before is not None and after is not None and after < before:
        yield f"the {label} would shrink from {old['size']} to {new['size']}"


_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _gib(size: Any) -> float | None:
    """Return a size in GiB: a number is that already, a text has a unit."""
    if isinstance(size, int | float) and not isinstance(size, bool):
        return float(size)
    if isinstance(size, str) and size[-1:] in _UNITS and size[:-1].replace(".", "", 1).isdigit():
        return float(size[:-1]) * _UNITS[size[-1]] / 2**30
    return None


def find_foreign_state(changes: Changes, spared: Collection[str] = ()) -> Iterator[Finding]:
    """Report a plan that removes all that the state has: another target's state, or a truncated input.

    Args:
        changes: What the plan does.
        spared: Addresses that would stay under another name.
    """
    existing = [change for change in changes.planned if change.before is not None]
    kept = [change for change in existing if not change.destroys or change.address in spared]
    if existing and not kept and any(is_guest(change) for change in existing):
        gone = ", ".join(sorted(name_of(change) for change in existing if is_guest(change)))
        yield Finding(
            kind=NOTHING_IN_COMMON,
            detail=f"Not one of the {len(existing)} resources in the state would stay; gone would be {gone}.",
        )
