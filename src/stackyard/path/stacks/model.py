"""What stackyard knows of the guests of generated code: the guard then checks them against the cluster.

The code of a user says what it likes, and only the engine understands all of it. Code that stackyard has
generated from a model is judged as the model is: names, capacity, privileges, owners of IDs.
"""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.desired import Desired
from stackyard.engine.tofu import PlanMode
from stackyard.guard import Verdict, inspect, inspect_facts
from stackyard.guard.checks import list_reads
from stackyard.guard.implied import derive_implied_calls
from stackyard.guard.ownership import without_adoption
from stackyard.guard.subjects import FILES, short_kind
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.known_state import known_state_of
from stackyard.path.locate import by_label, nowhere
from stackyard.path.owners import read_owners
from stackyard.path.survey import survey
from stackyard.path.unfinished import find_unfinished
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from stackyard.base.errors import Location
    from stackyard.base.events import Emit
    from stackyard.engine.changes import Changes
    from stackyard.engine.failures import Finding
    from stackyard.guard import Cluster, Owners
    from stackyard.path.locate import Locate
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.stacks.run import StackRun
    from stackyard.state import StateService

    Prepare = Callable[[Changes, Emit], Awaitable[None]]

__all__ = ["StackModel", "judge_model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackModel:
    """The model that code was generated from.

    Attributes:
        desired: The guests and files.
        connection: The cluster that they are on.
        addresses: By the key of a guest or file, the address of its resource.
        locate: Where a guest, or a field of it, is written in the input.
        prepare: Called with what a plan changes before it is applied.
        is_about_us: Tells whether a finding of the engine is about the generated code alone, which the user
            cannot change.
    """

    desired: Desired
    connection: proxmox.Connection
    addresses: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    locate: Locate = field(default=nowhere, repr=False, compare=False)
    prepare: Prepare | None = field(default=None, repr=False, compare=False)
    is_about_us: Callable[[Finding], bool] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class _OpenCluster:
    """A cluster that is looked at."""

    client: proxmox.Client
    endpoint: str
    states: StateService


async def judge_model(
    run: StackRun, model: StackModel, plan_request: PlanRequest, changes: Changes, state: bytes | None
) -> Verdict:
    """Return what the guard says of a plan of generated code.

    Args:
        run: The stack.
        model: The model that its code was generated from.
        plan_request: What the user asks for.
        changes: What the plan does.
        state: The state that was planned with.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say what other states have.
    """
    desired = model.desired if plan_request.mode is PlanMode.NORMAL else Desired()
    async with proxmox.Client(model.connection) as client:
        opened = _OpenCluster(client, model.connection.endpoint, run.states)
        cluster = await survey(client, {guest.node for guest in desired.guests}, known_state_of(state).vm_ids)
        owners = await _read_owners(run, opened, cluster)
        implied = derive_implied_calls(desired, changes, addresses=model.addresses)
        reads = list_reads(implied, cluster)
        facts = await read_facts(client, cluster, reads, caller=caller_of(model.connection))
        strangers = await _without_unfinished(run, client, cluster, owners)
    # An image is of no use by itself: what it was downloaded for is what counts.
    counted = dataclasses.replace(
        changes, planned=tuple(one for one in changes.planned if short_kind(one) not in FILES)
    )
    verdict = inspect(counted, plan_request.allowances, strangers, owners)
    checked = inspect_facts(implied, dataclasses.replace(facts, owners=owners), plan_request.allowances)
    joined = verdict.join(checked).locate(_by_address(model))
    return dataclasses.replace(joined, refused=tuple(map(without_adoption, joined.refused)))


def _by_address(model: StackModel) -> Callable[[str, tuple[str | int, ...]], Location | None]:
    """Return what finds places by the labels of findings: the ends of addresses, or those of the model."""
    keys = {address.rpartition(".")[2]: key for key, address in model.addresses.items()}
    by_model = by_label(model.locate, model.desired)
    return lambda name, field: by_model(keys.get(name, name), field)


async def _read_owners(run: StackRun, opened: _OpenCluster, cluster: Cluster) -> Owners:
    own = run.resolved.target.state_name
    managed = await asyncio.to_thread(read_managed, run.states, but=(own,))
    return await read_owners(opened, cluster, managed)


async def _without_unfinished(
    run: StackRun, client: proxmox.Client, cluster: Cluster, owners: Owners
) -> Cluster:
    """Return the cluster without what a killed run of ours was creating: the provider continues with it."""
    if run.served is None:
        return cluster
    found = await find_unfinished(client, run.served.journal.entries, cluster, owners)
    ours = {entry.vm_id for entry in found}
    guests = tuple(guest for guest in cluster.guests if guest.vm_id not in ours)
    return dataclasses.replace(cluster, guests=guests)
