"""Who manages what is there already: this state, another one, or none that can be seen."""

from __future__ import annotations

import collections
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind
from stackyard.engine.changes import Action
from stackyard.guard.findings import Finding
from stackyard.guard.subjects import CLUSTER, describe, identity_of, is_guest, name_of, short_kind, vm_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.engine.changes import Change, Changes
    from stackyard.guard.cluster import Cluster, ClusterObject

__all__ = [
    "Adoption",
    "Owned",
    "Owners",
    "adoptions",
    "find_collisions",
    "find_shared_guests",
    "without_adoption",
]

UNMANAGED = Kind(
    code="E-GUARD-UNMANAGED-GUEST",
    summary="A guest that no state here manages is in the way",
    remedy="Give the new guest another vm id and name; or repeat with --adopt to take over the one that is "
    "there, unless a state that is kept in another store manages it: such a state cannot be seen from here.",
)
UNMANAGED_OBJECT = Kind(
    code="E-GUARD-UNMANAGED-OBJECT",
    summary="Something that no state here manages has the name of something new",
    remedy="Give the new one another name; or repeat with --adopt to take over the one that is there, unless "
    "a state that is kept in another store manages it: such a state cannot be seen from here.",
)
_REMOVE = (
    "Give the new one another name, and a guest another vm id too; or remove the one that is there, unless a "
    "state that is kept in another store manages it: such a state cannot be seen from here."
)
MANAGED_ELSEWHERE = Kind(
    code="E-GUARD-MANAGED-ELSEWHERE",
    summary="Something that another state manages is in the way",
    remedy="Give the new one another name, and a guest another vm id too; or change the target that manages "
    "the one that is there.",
)
OWNER_UNKNOWN = Kind(
    code="E-GUARD-OWNER-UNKNOWN",
    summary="Something is in the way, and another state may manage it",
    remedy="Give the new one another name, and a guest another vm id too. A state that the engine encrypts "
    "cannot be read; one that was applied through another endpoint is known after its next apply.",
)
IN_TWO_STATES = Kind(
    code="E-GUARD-IN-TWO-STATES",
    summary="A guest that would be destroyed is in another state too",
    remedy="Take it out of one of the two states with `stackyard state forget`; the guest itself stays.",
)

# What a state can have: a guest by its vm id, anything else by the type of its resource and its id there.
Owned = int | tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """What is known of other states.

    Attributes:
        states: The state that has a guest or another object.
        maybe: A state that has one of that id, perhaps on another cluster with nodes of the same names.
        unreadable: States that cannot be looked into.
        files: The state that has a file, by its volume.
    """

    states: Mapping[Owned, str] = field(default_factory=dict)
    maybe: Mapping[Owned, str] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def vm_ids(self) -> frozenset[int]:
        """The ids of the guests that other states have."""
        return frozenset(owned for owned in self.states if isinstance(owned, int))

    def list_suspects(self, owned: Owned) -> tuple[str, ...]:
        """Return the states that may have something, and of which no one can tell."""
        maybe = self.maybe.get(owned)
        return self.unreadable if maybe is None else (maybe, *self.unreadable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Something that is there already and could be taken over in place of what is to be created.

    Attributes:
        address: The resource that is to be created.
        name: What is to be created, in words.
        there: What is there, in words.
        owned: How a state has it.
        import_id: What the provider imports it as.
    """

    address: str
    name: str
    there: str
    owned: Owned
    import_id: str


def adoptions(changes: Changes, cluster: Cluster, owners: Owners) -> tuple[Adoption, ...]:
    """Return what is in the way of something new and can be taken over: certainly no other state has it."""
    found = _find_collisions_with_cluster(changes, cluster)
    return tuple(
        one for one in found if one.owned not in owners.states and not owners.list_suspects(one.owned)
    )


def _find_collisions_with_cluster(changes: Changes, cluster: Cluster) -> Iterator[Adoption]:
    """Return what is in the way of what is to be created."""
    new = [
        change for change in changes.planned if change.action is Action.CREATE and change.imported_as is None
    ]
    yield from _find_guest_collisions([change for change in new if is_guest(change)], changes, cluster)
    objects = {(one.kind, one.identity): one for one in cluster.objects}
    for change in new:
        there = objects.get((short_kind(change), identity_of(change)))
        if there is not None:
            yield Adoption(
                address=change.address,
                name=describe(change),
                there=_name_there(there),
                owned=(there.kind, there.state_id),
                import_id=there.import_id,
            )


def _name_there(there: ClusterObject) -> str:
    """Return what is there; what has no other name than what it says is it."""
    is_nameless = there.kind == "acl" or (there.kind == "firewall_rules" and not there.identity[:1].isdigit())
    return "it" if is_nameless else there.identity.removeprefix(f"{CLUSTER}/")


def _find_guest_collisions(new: list[Change], changes: Changes, cluster: Cluster) -> Iterator[Adoption]:
    """Return the guests that are in the way of ones to be created: with the same vm id, or the same name."""
    managed = {vm_id_of(change) for change in changes.planned if change.before is not None}
    strangers = [guest for guest in cluster.guests if guest.vm_id not in managed]
    by_id = {guest.vm_id: guest for guest in strangers}
    by_name = collections.defaultdict(list)
    for guest in strangers:
        by_name[guest.name].append(guest)
    for change in new:
        tags = (change.after or {}).get("tags")
        same = [one for one in by_name[name_of(change)] if one.may_be(tags if isinstance(tags, list) else ())]
        there = by_id.get(vm_id_of(change) or 0) or next(iter(same), None)
        if there is not None:
            yield Adoption(
                address=change.address,
                name=describe(change),
                there=f"{there.name} ({there.vm_id} on {there.node})",
                owned=there.vm_id,
                import_id=f"{there.node}/{there.vm_id}",
            )


def find_collisions(changes: Changes, cluster: Cluster, owners: Owners) -> Iterator[Finding]:
    """Report what is to be created although something with its id or name is there."""
    for one in _find_collisions_with_cluster(changes, cluster):
        state = owners.states.get(one.owned)
        is_a_guest = isinstance(one.owned, int)
        if state is not None:
            kind, why = MANAGED_ELSEWHERE, f", and the state {state} manages it."
        elif suspects := owners.list_suspects(one.owned):
            kind, why = OWNER_UNKNOWN, f", and {', '.join(suspects)} may manage it."
        else:
            kind, why = UNMANAGED if is_a_guest else UNMANAGED_OBJECT, " and nothing manages it."
        yield Finding(
            kind=kind,
            detail=f"{one.name} would be created, but {one.there} exists{why}",
            label=one.address.rpartition(".")[2] if is_a_guest else one.address,
            field=("vm_id",) if is_a_guest else (),
        )


def find_shared_guests(changes: Changes, owners: Owners) -> Iterator[tuple[str, Finding]]:
    """Return the guests that would be destroyed although another state has them too, by address."""
    for change in changes.planned:
        state = owners.states.get(vm_id_of(change) or 0)
        if is_guest(change) and change.destroys and state is not None:
            detail = f"{describe(change)} is in the state {state} too."
            yield change.address, Finding(kind=IN_TWO_STATES, detail=detail, label=change.name)


def without_adoption(finding: Finding) -> Finding:
    """Return a finding about a plan of generated code: --adopt takes nothing over into that."""
    if finding.kind not in (UNMANAGED, UNMANAGED_OBJECT):
        return finding
    return dataclasses.replace(finding, kind=dataclasses.replace(finding.kind, remedy=_REMOVE))
