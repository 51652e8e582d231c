"""Where guests run: someone may have moved one, and moving it back is a decision of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired import Vm
from stackyard.engine.changes import Action
from stackyard.guard.findings import Finding, Permit
from stackyard.guard.subjects import describe, is_guest, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.desired import Guest
    from stackyard.engine.changes import Changes
    from stackyard.guard.cluster import ClusterGuest

__all__ = ["ALLOW_MIGRATE", "elsewhere", "find_migrations"]

ALLOW_MIGRATE = "--allow-migrate"

ELSEWHERE = Kind(
    code="W-GUARD-ELSEWHERE",
    summary="A guest runs on another node than the input says",
    remedy="Change its node in the input to where it runs, or move it with what the finding gives.",
    severity=Severity.WARNING,
)
MIGRATES = Kind(
    code="E-GUARD-MIGRATES-GUEST",
    summary="A guest would be migrated to another node",
    remedy="Change its node in the input to where it runs; or name it with --allow-migrate.",
)


def elsewhere(guest: Guest, now: ClusterGuest) -> Finding:
    """Report a guest that is left where it runs."""
    if guest.ha is None:
        back = f"`{ALLOW_MIGRATE} {guest.name}` moves it"
    else:
        move = f"migrate vm:{now.vm_id}" if isinstance(guest, Vm) else f"relocate ct:{now.vm_id}"
        back = f"`ha-manager {move} {guest.node}` moves it"
    return Finding(
        kind=ELSEWHERE,
        detail=f"{guest.name} runs on {now.node} and is left there; the input says {guest.node}: {back}.",
    )


def find_migrations(changes: Changes) -> Iterator[Finding]:
    """Report guests that an update would move to another node."""
    for change in changes.planned:
        if change.action is not Action.UPDATE or not is_guest(change):
            continue
        for difference in change.differences:
            if difference.path == ("node_name",):
                yield Finding(
                    kind=MIGRATES,
                    detail=f"{describe(change)} would be migrated to {difference.after}.",
                    permit=Permit(option=ALLOW_MIGRATE, name=name_of(change)),
                    address=change.address,
                    label=change.name,
                    field=("node",),
                )
