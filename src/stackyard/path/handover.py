"""Handing objects over: what other states have of a target is planned with as its own, and then becomes so.

An apply locks the states that objects are taken from, stores the state of the target with the objects in it,
and only then takes them out of the others, before any engine works. Killed in between, both have them: the
next plan of the target plans with its own, and its apply takes them out of the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.documents.limits import LARGE
from stackyard.base.errors import InvalidInputError
from stackyard.engine.errored import ERRORED_STATE
from stackyard.engine.failures import StateLockedError
from stackyard.guard import Finding
from stackyard.path.known_state import forget_instances, join_rows, known_state_of
from stackyard.path.named_objects import NamedObject, describe_object
from stackyard.path.owners import StateLocality, node_fingerprints, place_of
from stackyard.path.planfile import PlanMovedError
from stackyard.path.workspace import Workspace
from stackyard.render.networks import APPLIER
from stackyard.render.references import short_type
from stackyard.state import StateDeletedError, refusals
from stackyard.state.inside import EncryptedStateError, address_in, read_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackyard.path.former_owners import FormerOwner
    from stackyard.path.known_state import KnownState
    from stackyard.path.plan import Plan
    from stackyard.path.run import Run
    from stackyard.path.target import Resolved
    from stackyard.state import StateService
    from stackyard.state.contents import Content
    from stackyard.state.inside import Instance
    from stackyard.state.run_lock import RunLock

__all__ = [
    "HandedOverError",
    "Handover",
    "Handovers",
    "complete_handovers",
    "find_handover",
    "join_handovers",
    "look_at_states",
    "move_objects",
]

# From the lineage of the state that gives, so that two plans make the same state.
_LINEAGES = uuid.UUID("6c0b1d5e-6a55-4f0e-9d0a-0c6d6a1a7f10")

OTHER_CLUSTER = Kind(
    code="W-HYPERVISOR-OTHER-CLUSTER",
    summary="A state with shared networks or pools is for another cluster",
    remedy="Write a file into hypervisors/ for that cluster, whose `api` is a node of it.",
    severity=Severity.WARNING,
)


NOT_TAKEN_OVER = Kind(
    code="W-HYPERVISOR-NOT-TAKEN-OVER",
    summary="Objects of another state stay: the target has not taken them over",
    remedy="To destroy them too, apply the target first: the apply takes them over.",
    severity=Severity.WARNING,
)


class HandedOverError(InvalidInputError):
    """A state has objects that belong to another target by now, which has not taken them over yet."""

    code = "E-HYPERVISOR-HANDED-OVER"
    summary = "Objects of a state belong to another target"
    default_remedy = "Apply the other target first: it takes them over."


class FormerStateError(InvalidInputError):
    """A state has objects of a target, and they cannot be taken out of it."""

    code = "E-HYPERVISOR-FORMER-STATE"
    summary = "Objects cannot be taken over from a state"
    default_remedy = "Make the state one that can be read, and run the command again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What leaves a state.

    Attributes:
        owner: The target that has it now.
        content: The state.
        addresses: Its instances that leave.
        objects: What they are, as users call it.
    """

    owner: FormerOwner
    content: Content
    addresses: frozenset[str]
    objects: tuple[str, ...]

    @property
    def state(self) -> str:
        """The name of the state."""
        return self.owner.owner.state_name

    def narrow(self, addresses: frozenset[str]) -> Handover:
        """Return the part of it with these addresses."""
        instances = read_view(self.content.body.data).instances.values()
        objects = _list_names(one for one in instances if one.address in addresses)
        return replace(self, addresses=addresses, objects=tuple(objects))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handovers:
    """What a target takes over.

    Attributes:
        known: The state of the target, with it.
        pending: What leaves which state.
        notes: States that are left alone.
    """

    known: KnownState
    pending: tuple[Handover, ...] = ()
    notes: tuple[Finding, ...] = ()


async def look_at_states(run: Run, *, takes_more: bool = True) -> Handovers:
    """Return the state of a target with what it takes over from others.

    Args:
        run: The target.
        takes_more: Whether it takes over what its state does not have yet. Who destroys a target means what
            it has, and not what its apply would take over; half of a hand-over is completed all the same.

    Raises:
        HandedOverError: The state has what belongs to another target.
        FormerStateError: Something cannot be taken over.
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say.
    """
    pending, notes = [], []
    for owner in run.resolved.former:
        found = await asyncio.to_thread(find_handover, run.states, owner)
        if found is None:
            continue
        if not await _is_here(run, found.state):
            detail = f"{found.state} has {', '.join(found.objects)}, and was applied to another cluster."
            notes.append(Finding(kind=OTHER_CLUSTER, detail=detail))
            continue
        _require_stored(run, owner)
        if not takes_more:
            found, left = await asyncio.to_thread(_split_handover, run, found)
            notes += left
        pending += [] if found is None else [found]
    known = await asyncio.to_thread(join_handovers, run.states, run.resolved, pending)
    _require_own(run, known)
    return Handovers(known=known, pending=tuple(pending), notes=tuple(notes))


def _read(states: StateService, name: str) -> Content | None:
    try:
        return states.contents.read(name)
    except StateDeletedError:
        return None


def find_handover(states: StateService, owner: FormerOwner) -> Handover | None:
    """Return what leaves the state of a former owner; None where nothing does.

    Raises:
        FormerStateError: It cannot be looked into.
        StoreError: The store cannot say.
    """
    content = _read(states, owner.owner.state_name)
    if content is None:
        return None
    try:
        view = read_view(content.body.data)
    except EncryptedStateError as err:
        raise FormerStateError(
            f"The engine encrypted {owner.owner.state_name}, which may have objects of this target.",
            remedy="Decrypt it with the engine, or delete the state if nothing in it is used.",
        ) from err
    leaving = [
        one for one in view.instances.values() if one.mode == "managed" and owner.gives(short_type(one.type))
    ]
    if not leaving:
        return None
    return Handover(
        owner=owner,
        content=content,
        addresses=frozenset(one.address for one in leaving),
        objects=tuple(_list_names(leaving)),
    )


def _split_handover(run: Run, found: Handover) -> tuple[Handover | None, list[Finding]]:
    """Return what of a hand-over the state of a target has already, and what to say of the rest."""
    own = _read(run.states, run.resolved.target.state_name)
    has = _Contents.of(None if own is None else own.body.data)
    rows = parse_json(found.content.body.data, LARGE)["resources"]
    leaving = [row for row in rows if _is_leaving(row, found.addresses)]
    both = {address_in(row, one) for row in leaving if has.has(row) for one in row["instances"]}
    mine, other = found.narrow(found.addresses & both), found.narrow(found.addresses - both)
    kept = mine if mine.addresses else None
    if not other.objects:
        return kept, []
    detail = (
        f"{found.state} has {', '.join(other.objects)}. {run.resolved.target} has not taken that over, and "
        "leaves it there."
    )
    return kept, [Finding(kind=NOT_TAKEN_OVER, detail=detail)]


def _list_names(instances: Iterable[Instance]) -> list[str]:
    """Return what users call instances; what applies changes of the SDN is nothing on the cluster."""
    shown = (one for one in instances if one.type != APPLIER)
    return sorted({describe_object(short_type(one.type), one.attributes) for one in shown})


async def _is_here(run: Run, state: str) -> bool:
    prints = await node_fingerprints(run)
    place = await asyncio.to_thread(place_of, run, state, set(prints), prints)
    return place is StateLocality.HERE


def _require_stored(run: Run, owner: FormerOwner) -> None:
    errored = Workspace.of(run.settings.base, owner.owner).folder / ERRORED_STATE
    if errored.exists():
        state = owner.owner.state_name
        raise FormerStateError(
            f"An apply could not store {state}, and left it in {errored}.",
            remedy=f"Store it first: stackyard state recover {state}",
        )


def join_handovers(states: StateService, resolved: Resolved, pending: Sequence[Handover]) -> KnownState:
    """Return the state of a target with what leaves others, as far as it does not have it yet.

    Raises:
        StoreError: The store cannot say.
    """
    name, desired = resolved.target.state_name, resolved.desired
    own = _read(states, name)
    data = None if own is None else own.body.data
    has = _Contents.of(data)
    taken: dict[bytes, frozenset[str]] = {}
    for one in pending:
        rows = parse_json(one.content.body.data, LARGE)["resources"]
        new = [row for row in rows if _is_leaving(row, one.addresses) and not has.has(row)]
        has.add(new)
        if new:
            taken[one.content.body.data] = frozenset(_base(row) for row in new)
    if not taken:
        return known_state_of(data, desired)
    lineage = uuid.uuid5(_LINEAGES, f"{name} {' '.join(one.content.version.lineage for one in pending)}")
    joined = join_rows(data, list(taken), lambda other, row: _base(row) in taken[other], lineage=str(lineage))
    return known_state_of(joined, desired, is_joined=True)


def _base(row: Mapping[str, Any]) -> str:
    return address_in(row, {})


def _is_leaving(row: Mapping[str, Any], addresses: frozenset[str]) -> bool:
    return any(address_in(row, one) in addresses for one in row["instances"])


class _Contents:
    """What a state has, by address and by what it is on the cluster."""

    def __init__(self) -> None:
        self._addresses: set[str] = set()
        self._objects: set[tuple[str, str, str]] = set()

    @classmethod
    def of(cls, data: bytes | None) -> _Contents:
        found = cls()
        if data is not None:
            found.add(parse_json(data, LARGE).get("resources") or ())
        return found

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        for row in rows:
            self._addresses.add(_base(row))
            self._objects.update(_identities(row))

    def has(self, row: Mapping[str, Any]) -> bool:
        return _base(row) in self._addresses or not self._objects.isdisjoint(_identities(row))


def _identities(row: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    for instance in row["instances"]:
        values = instance.get("attributes") or {}
        one = NamedObject(type=row["type"], address="", values=values)
        if row.get("mode") == "managed" and one.identity[1]:
            yield (*one.identity, one.type)


def _require_own(run: Run, known: KnownState) -> None:
    for successor in run.resolved.successors:
        foreign = [one for one in known.instances.values() if successor.takes(short_type(one.type))]
        if foreign:
            names = ", ".join(_list_names(foreign)) or "parts of the SDN"
            raise HandedOverError(
                f"The state of {run.resolved.target} still has {names}, which {successor.target} has by now.",
                remedy=f"Let that take them over first: stackyard apply {successor.target}",
            )


async def complete_handovers(run: Run, made: Plan) -> None:
    """Store the state that a plan was made on; then take what it took over out of the other states.

    Raises:
        PlanMovedError: Another state was changed since the plan was made; nothing was.
        StateLockedError: Somebody else holds one of the states for longer than we wait.
        StoreError: A state cannot be stored; the next apply goes on from there.
    """
    if not made.handovers:
        if made.staged is not None:
            await asyncio.to_thread(run.lock.store, made.staged)
        return
    states = ", ".join(sorted({one.state for one in made.handovers}))
    with events.step(run.emit, "hand over", f"Taking over what {states} has"):
        try:
            await move_objects(
                run.lock,
                made.staged,
                made.handovers,
                target=str(run.resolved.target),
                wait_s=run.settings.lock_wait_s,
            )
        except refusals.StateLockedError as err:
            raise StateLockedError(err.detail) from err


async def move_objects(
    lock: RunLock, staged: bytes | None, handovers: Sequence[Handover], *, target: str, wait_s: float
) -> None:
    """Store a state with objects of others, and take them out of those.

    Args:
        lock: The lock of the state.
        staged: The state with the objects; None where it has them already.
        handovers: What leaves which state.
        target: Who takes it, as users name it.
        wait_s: How long to wait for those who hold the others.

    Raises:
        PlanMovedError: Another state was changed since it was looked at; nothing was.
        StateLockedError: Somebody else holds one of them for longer than we wait.
        StoreError: A state cannot be stored.
    """
    async with contextlib.AsyncExitStack() as stack:
        held = []
        # In one order, so that no two runs wait for each other.
        for one in sorted(handovers, key=lambda one: one.state):
            other = await stack.enter_async_context(lock.hold_another(one.state, wait_s=wait_s))
            now = await asyncio.to_thread(_read, lock.service, one.state)
            if now is None or now.version != one.content.version:
                raise PlanMovedError(f"{one.state}, from which objects are taken over, was changed since.")
            held.append((one, other))
        if staged is not None:
            count = sum(len(one.addresses) for one in handovers)
            origins = ", ".join(one.state for one, _ in held)
            note = f"takes over {count} resource{'' if count == 1 else 's'} from {origins}"
            await asyncio.to_thread(lock.store, staged, note=note)
        for one, other in held:
            data = forget_instances(one.content.body.data, one.addresses)
            note = f"{', '.join(one.objects)}: taken over by {target}"
            await asyncio.to_thread(other.store, data, note=note)
