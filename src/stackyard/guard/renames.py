"""Guests under a new key: the same machine, which OpenTofu takes for one to destroy and one to make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind
from stackyard.engine.changes import Action
from stackyard.guard.findings import Finding
from stackyard.guard.subjects import (
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
from stackyard.render.names import key_of, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.engine.changes import Change, Changes

__all__ = ["Rename", "find_renames", "renames"]

RENAMES_GUEST = Kind(
    code="E-GUARD-RENAMES-GUEST",
    summary="A guest has a new key",
    remedy="Repeat with --accept-renames to move it in the state, or give it its old key back.",
)

# What two descriptions of one guest agree on, whatever its key and name are.
_IDENTITY = ("node_name", "cpu", "memory", "disk", "network_device", "network_interface", "mount_point")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A guest that is in the state under one address and in the input under another.

    Attributes:
        source: Its address in the state.
        destination: Its address in the input.
        reason: Why it is taken for the same.
        belongings: Its files, firewall and replications, from and to which addresses they go with it.
    """

    source: str
    destination: str
    reason: str
    belongings: tuple[tuple[str, str], ...] = ()

    @property
    def moves(self) -> tuple[tuple[str, str], ...]:
        """What has to move in the state."""
        return ((self.source, self.destination), *self.belongings)


def renames(changes: Changes) -> tuple[Rename, ...]:
    """Return the pairs of a guest that would go and one that would come which are the same machine."""
    going = [change for change in changes.planned if change.action is Action.DELETE and is_guest(change)]
    coming = [change for change in changes.planned if change.action is Action.CREATE and is_guest(change)]
    found: list[Rename] = []
    for old in going:
        for new in coming:
            reason = _same(old, new)
            taken = {rename.destination for rename in found}
            if reason is not None and new.address not in taken:
                found.append(
                    Rename(
                        source=old.address,
                        destination=new.address,
                        reason=reason,
                        belongings=(
                            *_list_guest_files(changes, old, new),
                            *_list_protection(changes, old, new),
                        ),
                    )
                )
                break
    return tuple(found)


def _list_guest_files(changes: Changes, old: Change, new: Change) -> Iterator[tuple[str, str]]:
    """Return the files that were made for a guest, with the addresses that they have for it now."""
    snippets = [change for change in changes.planned if is_snippet(change)]
    going = {volume_of(one): one.address for one in snippets if one.action is Action.DELETE}
    coming = {volume_of(one): one.address for one in snippets if one.action is Action.CREATE}
    now = data_files(new.after)
    for attribute, volume in data_files(old.before).items():
        if volume in going and now.get(attribute) in coming:
            yield going[volume], coming[now[attribute]]


def _list_protection(changes: Changes, old: Change, new: Change) -> Iterator[tuple[str, str]]:
    """Return the firewall and the replications of a guest, with the addresses that they have for it now."""
    coming = {change.address for change in changes.planned if change.action is Action.CREATE}
    for change in changes.planned:
        if change.action is not Action.DELETE or owner_of(change) != vm_id_of(old):
            continue
        now = f"{change.kind}.{_name_now(change, new.name)}"
        if owner_of(change) is not None and now in coming:
            yield change.address, now


def _name_now(change: Change, guest: str) -> str:
    """Return the name of a resource that belongs to a guest under the new name of that."""
    before = change.before or {}
    if short_kind(change) == "replication":
        return f"{guest}_{str(before.get('id')).rpartition('-')[2]}"
    name = before.get("name")
    return guest if name is None else label(f"{key_of(guest)}/{name}")


def find_renames(changes: Changes) -> Iterator[Finding]:
    """Report each rename."""
    by_address = {change.address: change for change in changes.planned}
    for rename in renames(changes):
        old, new = by_address[rename.source], by_address[rename.destination]
        yield Finding(
            kind=RENAMES_GUEST,
            detail=f"{describe(old)} looks like {name_of(new)} under a new key: {rename.reason}.",
            label=new.name,
            field=("key",),
        )


def _same(old: Change, new: Change) -> str | None:
    if old.kind != new.kind:
        return None
    vm_id = vm_id_of(new)
    if vm_id is not None:
        return f"both have the vm id {vm_id}" if vm_id == vm_id_of(old) else None
    before, after = old.before or {}, new.after or {}
    shared = [field for field in _IDENTITY if field in before and field in after]
    # Without a disk to compare, any two guests are alike.
    if "disk" in shared and all(_agrees(before[field], after[field]) for field in shared):
        return "both are of the same make"
    return None


def _agrees(before: Any, after: Any) -> bool:
    """Return whether all that is known of the new one is so in the old one."""
    if isinstance(after, dict):
        return isinstance(before, dict) and all(
            _agrees(before.get(key), value) for key, value in after.items()
        )
    if isinstance(after, list):
        return (
            isinstance(before, list)
            and len(before) == len(after)
            and all(_agrees(one, other) for one, other in zip(before, after, strict=True))
        )
    is_known = after is not None and isinstance(after, str | int | float | bool)
    return not is_known or before == after
