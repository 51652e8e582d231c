"""What the input means for guests that exist: they keep the id that they have and the node where they run.

The input says what a guest should be. Two things in it are not worth the guest itself: an id that was only
counted from its place in a list, and the node that it was created on. Both are taken from the state and from
the cluster before anything is rendered, so that no engine ever plans to replace a guest over them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.base.diagnostics import Kind, Severity
from stackyard.desired import Container
from stackyard.guard import Finding, Permit
from stackyard.guard.moves import ALLOW_MIGRATE, elsewhere
from stackyard.path.known_state import StateEdit
from stackyard.path.migration import GuestMove
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from stackyard.desired import Desired, Guest, Replication
    from stackyard.guard import Cluster, ClusterGuest
    from stackyard.path.known_state import KnownState

__all__ = ["ModelContext", "SettledModel", "settle"]

OTHER_ID = Kind(
    code="W-GUARD-OTHER-ID",
    summary="The id that was counted for a new guest is taken",
    remedy="Nothing has to be done; `vmid` in the input chooses another one.",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContext:
    """What is there around a model.

    Attributes:
        known: What the state of the target has.
        cluster: What the cluster has.
        managed: The ids of guests that other states have.
        unfinished: The ids of guests that a killed run was creating, by the name of each.
        permits: What the user has named.
    """

    known: KnownState
    cluster: Cluster
    managed: Collection[int] = ()
    unfinished: Mapping[str, int] = field(default_factory=dict)
    permits: Collection[Permit] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledModel:
    """A model that fits what exists.

    Attributes:
        desired: The model.
        notes: What the user should know about it.
        refused: What of it cannot be.
        edit: What the state has to say before a plan is made.
        migrations: Containers to move once the rest is applied.
    """

    desired: Desired
    notes: tuple[Finding, ...] = ()
    refused: tuple[Finding, ...] = ()
    edit: StateEdit = field(default_factory=StateEdit)
    migrations: tuple[GuestMove, ...] = ()


def settle(desired: Desired, around: ModelContext) -> SettledModel:
    """Fit a model to the guests that exist."""
    if not around.known.is_readable:
        # Without the state no one knows which guest is which.
        return SettledModel(desired=desired)
    numbers = _GuestIds(desired, around)
    ids = {guest.key: numbers.of(guest) for guest in desired.guests}
    places = _GuestNodes(around)
    nodes = {guest.key: places.of(guest, ids[guest.key]) for guest in desired.guests}
    return SettledModel(
        desired=_with_guests(desired, nodes, ids),
        notes=(*numbers.notes, *places.notes),
        edit=StateEdit(nodes=_list_moved_containers(around)),
        migrations=tuple(places.migrations),
    )


def _list_moved_containers(around: ModelContext) -> dict[str, str]:
    """Return the containers that are on another node than the state says, by address.

    A provider looks for a container only where the state says, and takes it for gone.
    """
    by_id = {guest.vm_id: guest.node for guest in around.cluster.guests if guest.kind == "lxc"}
    found = {}
    for address, instance in around.known.guests.items():
        node = by_id.get(instance.attributes.get("vm_id") or 0)
        if node is not None and node != instance.attributes.get("node_name"):
            found[address] = node
    return found


def _with_guests(desired: Desired, nodes: Mapping[str, str], ids: Mapping[str, int | None]) -> Desired:
    def fit(guest: Guest) -> Guest:
        now = {
            "node": nodes[guest.key],
            "vm_id": ids[guest.key],
            "replication": _turn_round(guest, nodes[guest.key]),
        }
        update = {name: value for name, value in now.items() if getattr(guest, name) != value}
        return guest.model_copy(update=update) if update else guest

    vms, containers = tuple(map(fit, desired.vms)), tuple(map(fit, desired.containers))
    if all(a is b for a, b in zip((*vms, *containers), desired.guests, strict=True)):
        return desired
    return desired.model_copy(update={"vms": vms, "containers": containers})


def _turn_round(guest: Guest, node: str) -> tuple[Replication, ...]:
    """Return the replications of a guest as they are when it has moved to the node of its copies.

    Proxmox turns the job round then: the copies are kept where the guest was.
    """
    if node == guest.node or not guest.replication:
        return guest.replication
    return tuple(
        job.model_copy(update={"target": guest.node}) if job.target == node else job
        for job in guest.replication
    )


def _own_id(guest: Guest, around: ModelContext) -> int | None:
    instance = around.known.guests.get(address_of(guest))
    vm_id = None if instance is None else instance.attributes.get("vm_id")
    return vm_id if isinstance(vm_id, int) else None


class _GuestIds:
    """The ids of the guests of a model."""

    def __init__(self, desired: Desired, around: ModelContext) -> None:
        self._around = around
        self.notes: list[Finding] = []
        self._fixed = {guest.key: fixed for guest in desired.guests if (fixed := self._fix(guest))}
        self._by_id = {guest.vm_id: guest for guest in around.cluster.guests}
        self._taken = {*self._fixed.values(), *around.managed}
        # The ids of guests that leave the input.
        self._leaving = around.known.vm_ids - set(self._fixed.values())

    def of(self, guest: Guest) -> int | None:
        """Return the id of a guest; None where Proxmox chooses."""
        fixed = self._fixed.get(guest.key)
        if fixed is not None or guest.vm_id is None:
            return fixed
        number = guest.vm_id
        if not self._is_free(number, guest):
            number = next(n for n in self._after(number) if n not in self._by_id)
            detail = f"{guest.name} gets the id {number}: {guest.vm_id} is taken{self._by_whom(guest.vm_id)}."
            self.notes.append(Finding(kind=OTHER_ID, detail=detail))
        self._taken.add(number)
        return number

    def _fix(self, guest: Guest) -> int | None:
        """Return the id that a guest has, or that its user wrote down."""
        if not guest.vm_id_counted:
            return guest.vm_id
        return _own_id(guest, self._around) or self._around.unfinished.get(guest.name)

    def _is_free(self, number: int, guest: Guest) -> bool:
        if number in self._taken:
            return False
        there = self._by_id.get(number)
        # One of the same name may be this very guest without a state, and one that leaves the input may be
        # this one under its old key: the guard finds both, and says what can be done.
        return there is None or there.name == guest.name or number in self._leaving

    def _after(self, number: int) -> Iterator[int]:
        while True:
            number += 1
            if number not in self._taken:
                yield number

    def _by_whom(self, number: int) -> str:
        there = self._by_id.get(number)
        return "" if there is None else f" by {there.name} on {there.node}"


class _GuestNodes:
    """The nodes of the guests of a model."""

    def __init__(self, around: ModelContext) -> None:
        self._around = around
        self._by_id = {guest.vm_id: guest for guest in around.cluster.guests}
        self.notes: list[Finding] = []
        self.migrations: list[GuestMove] = []

    def of(self, guest: Guest, vm_id: int | None) -> str:
        """Return the node that a guest is rendered for."""
        own = _own_id(guest, self._around)
        now = self._by_id.get(own or 0)
        is_same = own is not None and vm_id in (None, own)
        if not is_same or now is None or now.node == guest.node:
            return guest.node
        # A node that the cluster does not have is a mistake in the input, no matter who moved the guest.
        return self._away(guest, now) if self._around.cluster.node(guest.node) else guest.node

    def _away(self, guest: Guest, now: ClusterGuest) -> str:
        is_permitted = Permit(option=ALLOW_MIGRATE, name=guest.name) in self._around.permits
        if not is_permitted or guest.ha is not None:
            self.notes.append(elsewhere(guest, now))
        elif isinstance(guest, Container):
            self.migrations.append(GuestMove(name=guest.name, vm_id=now.vm_id, target=guest.node))
        else:
            return guest.node
        return now.node
