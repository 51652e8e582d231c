"""Drift: what is no longer as it was applied, and what no one manages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.engine.changes import Action
from stackyard.guard.subjects import is_guest, vm_id_of
from stackyard.path.first_boot_data import NOT_APPLIED

if TYPE_CHECKING:
    from stackyard.engine.changes import Change
    from stackyard.guard import ClusterGuest, Finding
    from stackyard.path.plan import Plan

__all__ = ["Drift", "find_drift"]

# What changes by itself while guests live, and is no one's doing.
_IGNORED = frozenset(
    "ipv4_addresses ipv6_addresses mac_addresses network_interface_names ipv4 ipv6 members pending state "
    "file_modification_date".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What a look at the cluster found.

    Attributes:
        managed: Resources of the target that an apply would put right.
        ignored: Resources that changed only in what changes by itself.
        unmanaged: Guests on the cluster that no state of the site has.
        not_applied: What the input says and no apply changes in guests that exist.
    """

    managed: tuple[Change, ...]
    ignored: tuple[Change, ...]
    unmanaged: tuple[ClusterGuest, ...]
    not_applied: tuple[Finding, ...] = ()

    @property
    def is_there(self) -> bool:
        """Whether an apply would change anything."""
        return bool(self.managed)


def find_drift(made: Plan) -> Drift:
    """Return the drift that a plan shows: what it would put right, and what it leaves alone."""
    managed = tuple(
        change for change in made.shown.planned if change.action not in (Action.NOTHING, Action.READ)
    )
    corrected = {change.address for change in managed}
    ignored = tuple(
        change
        for change in made.changes.drifted
        if change.address not in corrected
        and all(difference.path[0] in _IGNORED for difference in change.differences)
    )
    ours = {vm_id_of(change) for change in made.changes.planned if is_guest(change)}
    ours |= made.owners.vm_ids
    unmanaged = tuple(guest for guest in made.cluster.guests if guest.vm_id not in ours)
    not_applied = tuple(one for one in made.verdict.warnings if one.kind in NOT_APPLIED)
    return Drift(managed=managed, ignored=ignored, unmanaged=unmanaged, not_applied=not_applied)
