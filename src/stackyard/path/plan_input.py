"""What is known before an engine plans: the cluster, the states, and the model fitted to both."""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base import events
from stackyard.engine import tofu
from stackyard.guard import Permit
from stackyard.guard.destruction import ALLOW_DESTROY, FILES
from stackyard.guard.subjects import name_in, short_type
from stackyard.path.cluster_objects import with_objects
from stackyard.path.credentials.look import find_imports, look_at_credentials
from stackyard.path.first_boot_data import data_notes, keep_images
from stackyard.path.handover import look_at_states
from stackyard.path.kept_settings import import_settings, keep_settings
from stackyard.path.owners import read_owners
from stackyard.path.settle import ModelContext, settle
from stackyard.path.shared_files import Files, look_at_files
from stackyard.path.survey import survey
from stackyard.path.unfinished import find_unfinished
from stackyard.path.visibility import require_visible
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.guard import Cluster, Owners
    from stackyard.path.credentials.rows import CredentialPlan
    from stackyard.path.handover import Handover
    from stackyard.path.known_state import KnownState
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.run import Run
    from stackyard.path.settle import SettledModel

__all__ = ["PlanInput", "look"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What is known before an engine plans.

    Attributes:
        known: What the state has.
        cluster: What the cluster has.
        owners: What other states have there.
        settled: The model, fitted to the guests that exist.
        staged: The state to plan with, where it is not the stored one.
        handovers: What of it leaves other states.
        unfinished: The ids of guests that a killed run of ours was creating.
        blocks: What every plan of the target does besides: files under another name, imports.
        credentials: What is done beside the engine.
    """

    known: KnownState
    cluster: Cluster
    owners: Owners
    settled: SettledModel
    staged: bytes | None
    handovers: tuple[Handover, ...]
    unfinished: frozenset[int]
    blocks: Mapping[str, Any]
    credentials: CredentialPlan


async def look(run: Run, plan_request: PlanRequest, created: frozenset[str] = frozenset()) -> PlanInput:
    """Look at everything that a plan depends on.

    Args:
        run: The target.
        plan_request: What the user asks for.
        created: Names of guests that will be created, whatever they were created from before.
    """
    nodes = {guest.node for guest in run.resolved.desired.guests}
    with events.step(run.emit, "survey", "Looking at the cluster"):
        states = await look_at_states(run, takes_more=plan_request.takes_more)
        known = states.known
        cluster = await with_objects(run, await survey(run.client, nodes, known.vm_ids), known)
        await require_visible(run.client, known, cluster)
        # Read once: both the guests and the files of others come from it.
        managed = await asyncio.to_thread(
            read_managed,
            run.states,
            but=(run.resolved.target.state_name, *(one.state for one in states.pending)),
        )
        owners = await read_owners(run, cluster, managed)
        entries = () if run.served is None else run.served.journal.entries
        unfinished = await find_unfinished(run.client, entries, cluster, owners)
        record = await asyncio.to_thread(run.states.targets.read, run.resolved.target.state_name)
        before = Files(known=known, cluster=cluster, record=record, managed=managed)
        files = await look_at_files(run, before, mode=plan_request.mode)
        credentials = await look_at_credentials(run, plan_request, record, known)
        imports = await find_imports(run, record, known)
        wanted = files.desired
        if plan_request.mode is tofu.PlanMode.NORMAL:
            wanted = await keep_settings(run.client, wanted)
            imports += import_settings(wanted, known)
    around = ModelContext(
        known=known,
        cluster=cluster,
        managed=owners.vm_ids,
        unfinished={entry.subject.name: entry.vm_id for entry in unfinished if entry.subject.name},
        permits=plan_request.allowances.permits,
    )
    settled = settle(wanted, around)
    exists = {guest.vm_id for guest in cluster.guests}
    desired, notes = keep_images(settled.desired, known, exists, plan_request.recreate | created)
    notes = (*notes, *data_notes(desired, known, cluster, record))
    # A plan for some targets deletes no file of the others.
    forget = frozenset() if plan_request.targets else files.forget | credentials.kept.addresses
    edit = dataclasses.replace(settled.edit, complete=_to_complete(known, plan_request), forget=forget)
    settled = dataclasses.replace(
        settled,
        desired=desired,
        notes=(*settled.notes, *files.notes, *notes, *states.notes),
        refused=files.refused,
    )
    blocks = {"moved": [{"from": a, "to": b} for a, b in files.moves], "import": imports}
    return PlanInput(
        known=known,
        cluster=cluster,
        owners=owners,
        settled=settled,
        staged=known.edit(edit),
        handovers=states.pending,
        unfinished=frozenset(entry.vm_id for entry in unfinished),
        blocks={name: entries for name, entries in blocks.items() if entries},
        credentials=credentials,
    )


def _to_complete(known: KnownState, plan_request: PlanRequest) -> frozenset[str]:
    """Return what is there but whose creation failed, unless the user lets it go; files are written again."""
    if plan_request.mode is not tofu.PlanMode.NORMAL:
        return frozenset()
    found = set()
    for address in known.list_tainted():
        instance = known.instances[address]
        kind = short_type(instance.type)
        if kind == instance.type:
            # An object of another system: whether it is whole, only its own provider can tell.
            continue
        name = name_in(kind, instance.attributes) or address.rpartition(".")[2]
        if (
            kind not in FILES
            and Permit(option=ALLOW_DESTROY, name=name) not in plan_request.allowances.permits
        ):
            found.add(address)
    return frozenset(found)
