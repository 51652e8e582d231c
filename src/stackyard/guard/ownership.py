"""Who manages a guest: this state, another one, or none that can be seen."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.diagnostics import Kind
from stackyard.engine.changes import Action
from stackyard.guard.findings import Finding
from stackyard.guard.subjects import describe, is_guest, name_of, vm_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Changes
    from stackyard.guard.cluster import Cluster, ClusterGuest

__all__ = ["Adoption", "Owners", "adoptions", "find_collisions", "shared_guests"]

UNMANAGED = Kind(
    code="E-GUARD-UNMANAGED-GUEST",
    summary="A guest that no state here manages is in the way",
    remedy="Give the new guest another vm id and name; or repeat with --adopt to take over the one that is "
    "there, unless a state that is kept in another store manages it: such a state cannot be seen from here.",
)
MANAGED_ELSEWHERE = Kind(
    code="E-GUARD-MANAGED-ELSEWHERE",
    summary="A guest that another state manages is in the way",
    remedy="Give the new guest another vm id and name, or change the target that manages this one.",
)
OWNER_UNKNOWN = Kind(
    code="E-GUARD-OWNER-UNKNOWN",
    summary="A guest is in the way, and another state may manage it",
    remedy="Give the new guest another vm id and name. A state that the engine encrypts cannot be read; one "
    "that was applied through another endpoint is told apart after its next apply.",
)
IN_TWO_STATES = Kind(
    code="E-GUARD-IN-TWO-STATES",
    summary="A guest that would be destroyed is in another state too",
    remedy="Take it out of one of the two states with `stackyard state forget`; the guest itself stays.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """What is known of other states.

    Attributes:
        states: The state that has a guest, by vm id.
        maybe: A state that has a guest of that id, perhaps on another cluster with nodes of the same names.
        unreadable: States that cannot be looked into.
    """

    states: Mapping[int, str] = field(default_factory=dict)
    maybe: Mapping[int, str] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()

    def suspects(self, vm_id: int) -> tuple[str, ...]:
        """Return the states that may have a guest, and of which nobody can tell."""
        maybe = self.maybe.get(vm_id)
        return self.unreadable if maybe is None else (maybe, *self.unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A guest that is there already and could be taken over in place of one to be made."""

    address: str
    name: str
    guest: ClusterGuest

    @property
    def import_id(self) -> str:
        """What the provider imports it as."""
        return f"{self.guest.node}/{self.guest.vm_id}"


def adoptions(changes: Changes, cluster: Cluster, owners: Owners) -> tuple[Adoption, ...]:
    """Return the guests in the way of new ones that can be taken over: certainly no other state has them."""
    found = _in_the_way(changes, cluster)
    return tuple(
        one for one in found if one.guest.vm_id not in owners.states and not owners.suspects(one.guest.vm_id)
    )


def _in_the_way(changes: Changes, cluster: Cluster) -> Iterator[Adoption]:
    """Return the guests that are in the way of ones to be made: with the same vm id, or the same name."""
    managed = {vm_id_of(change) for change in changes.planned if change.before is not None}
    strangers = [guest for guest in cluster.guests if guest.vm_id not in managed]
    by_id = {guest.vm_id: guest for guest in strangers}
    by_name = collections.defaultdict(list)
    for guest in strangers:
        by_name[guest.name].append(guest)
    for change in changes.planned:
        if change.action is not Action.CREATE or not is_guest(change) or change.imported_as is not None:
            continue
        tags = (change.after or {}).get("tags")
        same = [one for one in by_name[name_of(change)] if one.may_be(tags if isinstance(tags, list) else ())]
        there = by_id.get(vm_id_of(change) or 0) or next(iter(same), None)
        if there is not None:
            yield Adoption(address=change.address, name=describe(change), guest=there)


def find_collisions(changes: Changes, cluster: Cluster, owners: Owners) -> Iterator[Finding]:
    """Report guests to be made whose vm id or name some other guest has."""
    for adoption in _in_the_way(changes, cluster):
        guest = adoption.guest
        who = f"{guest.name} ({guest.vm_id} on {guest.node})"
        state = owners.states.get(guest.vm_id)
        said = f"{adoption.name} would be made, but {who} is there"
        if state is not None:
            kind, why = MANAGED_ELSEWHERE, f", and the state {state} manages it."
        elif suspects := owners.suspects(guest.vm_id):
            kind, why = OWNER_UNKNOWN, f", and {', '.join(suspects)} may manage it."
        else:
            kind, why = UNMANAGED, " and nothing manages it."
        label = adoption.address.rpartition(".")[2]
        yield Finding(kind=kind, detail=f"{said}{why}", label=label, field=("vm_id",))


def shared_guests(changes: Changes, owners: Owners) -> Iterator[tuple[str, Finding]]:
    """Return the guests that would be destroyed although another state has them too, by address."""
    for change in changes.planned:
        state = owners.states.get(vm_id_of(change) or 0)
        if is_guest(change) and change.destroys and state is not None:
            detail = f"{describe(change)} is in the state {state} too."
            yield change.address, Finding(kind=IN_TWO_STATES, detail=detail, label=change.name)
