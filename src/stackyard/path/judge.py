"""What the guard says of a plan, with what it reads of the cluster for that."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stackyard.desired import Desired
from stackyard.engine import tofu
from stackyard.guard import Verdict, inspect, inspect_facts
from stackyard.guard.checks import NAMES, UNKNOWN, find_refusals, list_follow_ups, list_reads
from stackyard.guard.hypervisor.management import STATUS
from stackyard.guard.implied import ImpliedCalls, derive_implied_calls
from stackyard.path.bpg_login import find_unlike_logins
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.locate import by_label
from stackyard.path.name_changes import find_same_names, find_untouched, list_leaving
from stackyard.path.own_address import find_operator
from stackyard.render.references import address_of
from stackyard.render.userdata import with_data_files

if TYPE_CHECKING:
    from stackyard.engine.changes import Changes
    from stackyard.guard.facts import Facts
    from stackyard.path.plan_input import PlanInput
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.run import Run

__all__ = ["find_missing", "judge"]


async def judge(run: Run, plan_request: PlanRequest, changes: Changes, scene: PlanInput) -> Verdict:
    """Return what the guard says of a plan.

    Args:
        run: The target.
        plan_request: What the user asks for.
        changes: What the plan does.
        scene: What is known of the cluster.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    # What a killed run of ours was creating is no stranger: the provider takes it over.
    guests = tuple(guest for guest in scene.cluster.guests if guest.vm_id not in scene.unfinished)
    cluster = dataclasses.replace(scene.cluster, guests=guests)
    allowances = plan_request.allowances
    verdict = inspect(changes, allowances, cluster, scene.owners, is_rendered=True)
    verdict = verdict.join(Verdict(refused=scene.settled.refused, warnings=scene.settled.notes))
    verdict = verdict.join(Verdict.sort(scene.credentials.findings, allowances))
    desired = scene.settled.desired
    whole = desired if plan_request.mode is tofu.PlanMode.NORMAL else Desired()
    named = with_data_files(whole, run.resolved.target.state_name)
    implied = derive_implied_calls(named, changes, run.resolved.overcommit)
    implied = dataclasses.replace(
        implied,
        declared=run.resolved.declared(),
        beside=scene.credentials.access,
        used_tokens=scene.credentials.used,
        unchanged=find_untouched(whole, changes),
        leaving=list_leaving(whole, scene.known.instances),
    )
    facts = await _read(run, implied, scene)
    verdict = verdict.join(inspect_facts(implied, facts, allowances))
    if run.served is None:
        # bpg's provider runs by itself.
        unlike = tuple(find_unlike_logins(implied, run.resolved.ssh))
        verdict = verdict.join(Verdict(refused=(), warnings=unlike))
    return verdict.locate(by_label(run.resolved.locate, desired))


async def find_missing(run: Run, scene: PlanInput) -> Verdict:
    """Return what guests and objects use by name, and neither the cluster has nor the target makes.

    Args:
        run: The target.
        scene: What is known of the cluster.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    desired = with_data_files(scene.settled.desired, run.resolved.target.state_name)
    new = frozenset(guest.key for guest in desired.guests if address_of(guest) not in scene.known.instances)
    implied = ImpliedCalls(
        desired=desired,
        created=new,
        declared=run.resolved.declared(),
        unchanged=find_same_names(desired, scene.known.instances),
        leaving=list_leaving(desired, scene.known.instances),
    )
    reads = list_reads(implied, scene.cluster, NAMES)
    facts = await read_facts(run.client, scene.cluster, reads, caller=caller_of(run.resolved.connection))
    found = (one for one in find_refusals(implied, facts, NAMES) if one.kind is not UNKNOWN)
    verdict = Verdict(refused=tuple(found))
    return verdict.locate(by_label(run.resolved.locate, scene.settled.desired))


async def _read(run: Run, implied: ImpliedCalls, scene: PlanInput) -> Facts:
    caller = caller_of(run.resolved.connection)
    facts = await read_facts(run.client, scene.cluster, list_reads(implied, scene.cluster), caller=caller)
    wanted = list_follow_ups(implied, facts)
    if wanted:
        more = await read_facts(run.client, scene.cluster, wanted, caller=caller)
        facts = dataclasses.replace(
            facts,
            answers={**facts.answers, **more.answers},
            unanswered={**facts.unanswered, **more.unanswered},
        )
    # Only what concerns the network of nodes asks for their addresses.
    operator = await find_operator(run.resolved) if STATUS in facts.answers else None
    return dataclasses.replace(facts, owners=scene.owners, operator=operator)
