"""The registry of applied targets, as the path uses it: written by an apply, read when an input is gone."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from typing import TYPE_CHECKING

from stackyard.clients.objects import StoreDamagedError
from stackyard.engine.tofu import PlanMode
from stackyard.path.first_boot_data import next_boots
from stackyard.path.owners import node_fingerprints
from stackyard.path.shared_files import shared_names
from stackyard.state.managed import read_managed
from stackyard.state.targets import TargetRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from stackyard.path.plan import Plan
    from stackyard.path.run import Run
    from stackyard.state import StateService
    from stackyard.state.managed import ManagedResources

__all__ = ["find_states", "find_without_input", "record_applied", "record_target"]


async def record_target(run: Run, made: Plan) -> TargetRecord:
    """Write down what is about to be applied, from where and to which cluster.

    Args:
        run: The target.
        made: The plan.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: It cannot be stored; nothing may be applied then.
    """
    resolved, target = run.resolved, run.resolved.target
    nodes = dict(await node_fingerprints(run))

    def decide(before: TargetRecord | None) -> TargetRecord:
        known = before or TargetRecord(
            state=target.state_name, kind=target.kind, name=target.name, node=target.node
        )
        return dataclasses.replace(
            known,
            source=resolved.source or known.source,
            endpoint=resolved.connection.endpoint,
            nodes=nodes,
            applied_at=time.time(),
            # What is used stays known until nothing of the target is left.
            files=tuple(sorted({*known.files, *shared_names(made.desired, made.cluster)})),
        )

    return await asyncio.to_thread(run.states.targets.change, target.state_name, decide)


async def record_applied(run: Run, made: Plan, began_at: float) -> None:
    """Write down what an apply that went well has changed: what guests were created from, what they use.

    Args:
        run: The target.
        made: The plan.
        began_at: When the apply began, in seconds since 1970.

    Raises:
        StoreError: It cannot be stored.
    """
    if made.binding.mode != PlanMode.NORMAL.value:
        return

    def decide(before: TargetRecord | None) -> TargetRecord:
        if before is None:
            raise StoreDamagedError(f"The record of {run.resolved.target} was removed meanwhile.")
        boots = next_boots(made.desired, made.changes, made.cluster, before.first_boots, began_at)
        files = shared_names(made.desired, made.cluster)
        return dataclasses.replace(before, files=files, first_boots=boots)

    await asyncio.to_thread(run.states.targets.change, run.resolved.target.state_name, decide)


def find_states(states: StateService, kinds: Collection[str]) -> Iterator[TargetRecord]:
    """Return the targets of states that hold something, also of those that have no record yet.

    Raises:
        StoreError: The store cannot say.
    """
    return _find_states(states, read_managed(states), kinds)


def _find_states(
    states: StateService, managed: ManagedResources, kinds: Collection[str]
) -> Iterator[TargetRecord]:
    for name in (*managed.holdings, *managed.unreadable):
        if managed.holdings.get(name) == ():
            continue
        record = states.targets.read(name) or _from_name(name)
        if record is not None and record.kind in kinds:
            yield record


def _from_name(state: str) -> TargetRecord | None:
    """Return what the name of a state says; names that had to be escaped say too little."""
    parts = state.split("/")
    if len(parts) != 3 or "~" in state:
        return None
    kind, name, node = parts
    return TargetRecord(state=state, kind=kind, name=name, node=node)


def find_without_input(
    states: StateService, kind: str, names: Collection[str]
) -> Iterator[tuple[TargetRecord, int]]:
    """Return the targets of a kind whose states hold something and whose input is gone, with how much.

    Args:
        states: The states.
        kind: Which source.
        names: What the source has.

    Raises:
        StoreError: The store cannot say.
    """
    managed = read_managed(states)
    for record in _find_states(states, managed, (kind,)):
        if record.name not in names:
            yield record, len(managed.holdings.get(record.state, ()))
