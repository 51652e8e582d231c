"""The management address of a node, for stacks: what may cut it is refused, and has a way back.

Which cluster a node belongs to, and how to log in to it, only the provider blocks say. The built-in provider
knows them once the engine has configured it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from stackyard.clients import proxmox
from stackyard.desired import Desired
from stackyard.engine import tofu
from stackyard.engine.changes import Changes
from stackyard.engine.failures import TofuError
from stackyard.engine.plan_place import open_plan_place
from stackyard.guard import Verdict
from stackyard.guard.hypervisor.management import ask_interfaces, find_cuts
from stackyard.guard.implied import ImpliedCalls
from stackyard.guard.interruption import is_note, list_interface_changes
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.own_address import find_endpoint
from stackyard.path.survey import survey
from stackyard.path.way_back import NoWayBackError, ReachedNode, keep_ways_back, list_cut_nodes
from stackyard.provider.node_shell import find_login
from stackyard.provider.problems import ProviderSettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.engine.changes import Change
    from stackyard.guard import Allowances, Finding
    from stackyard.path.stacks.run import StackRun
    from stackyard.provider.session import Session

__all__ = ["judge_management", "keep_stack_way_back"]


async def judge_management(run: StackRun, changes: Changes, allowances: Allowances) -> Verdict:
    """Return what the guard says of changes of interfaces; nothing where bpg's own provider works.

    Args:
        run: The stack, planned.
        changes: What the plan does.
        allowances: What the user has named.

    Raises:
        ProxmoxError: A cluster does not answer.
    """
    found: list[Finding] = []
    by_node = list_interface_changes(changes)
    concerned = {node: mine for node, mine in by_node.items() if not all(map(is_note, mine))}
    if run.served is None or not concerned:
        return Verdict(refused=())
    for node, mine in sorted(concerned.items()):
        session = await _find_session(run, node)
        found += await _find_cuts(session, mine)
    return Verdict.sort(found, allowances)


async def _find_cuts(session: Session | None, changes: list[Change]) -> list[Finding]:
    implied = ImpliedCalls(desired=Desired(), changes=Changes(planned=tuple(changes)))
    if session is None:
        return []
    client, connection = session.client, session.settings.connection
    cluster = await survey(client, ())
    reads = frozenset(ask_interfaces(implied, cluster))
    facts = await read_facts(client, cluster, reads, caller=caller_of(connection))
    operator = await find_endpoint(connection)
    return list(find_cuts(implied, dataclasses.replace(facts, operator=operator)))


async def _find_session(run: StackRun, node: str) -> Session | None:
    """Return the session of the cluster that has a node; None where none is known to have it."""
    if run.served is None:
        return None
    if not run.served.sessions():
        await _configure(run)
    for session in run.served.sessions():
        rows = await session.client.get("/nodes", max_age_s=30.0)
        if any(row.get("node") == node for row in rows):
            return session
    return None


async def _configure(run: StackRun) -> None:
    """Let the engine configure the provider: a saved plan that is only read has not done that."""
    if run.served is None:
        return
    run.served.begin()
    options = tofu.PlanOptions(refresh=False, passed_on=run.resolved.arguments.words)
    with open_plan_place() as place, contextlib.suppress(TofuError):
        workdir = run.with_plan(place, is_encrypted=place.is_file)
        await tofu.plan(workdir, place.path, options=options, emit=run.emit)


@contextlib.asynccontextmanager
async def keep_stack_way_back(run: StackRun, verdict: Verdict) -> AsyncIterator[None]:
    """Let the nodes whose management address a plan may cut off undo the changes of the block.

    Raises:
        NoWayBackError: That cannot be had on a node; the block is not entered.
        NetworkRestoredError: A node was cut off, and has its old network again.
        NodeLostError: A node does not answer any more.
    """
    nodes = [await _reach(run, node) for node in list_cut_nodes(verdict)]
    async with keep_ways_back(nodes, run.emit):
        yield


async def _reach(run: StackRun, node: str) -> ReachedNode:
    session = await _find_session(run, node)
    if session is None:
        raise NoWayBackError(f"No provider of the stack is known to work on {node}.")
    try:
        host = await find_login(session, node)
    except (ProviderSettingsError, proxmox.ProxmoxError) as err:
        raise NoWayBackError(f"How to log in to {node} is not known: {err.detail}") from err
    return ReachedNode(name=node, host=host, client=session.client)
