"""What the table of the guard finds on a host: the same that a plan would be refused for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.guard.checks import TABLE, find_refusals, list_reads
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.locate import by_label

if TYPE_CHECKING:
    from stackyard.base.diagnostics import Diagnostic
    from stackyard.operator.preflight.reachable_host import ReachableHost

__all__ = ["find_guard_refusals"]


async def find_guard_refusals(reachable: ReachableHost, name: str) -> tuple[Diagnostic, ...]:
    """Return the findings of the rows of the table that belong to a check.

    Raises:
        ProxmoxError: The host does not answer.
    """
    rows = [row for row in TABLE if row.name == name]
    caller = caller_of(reachable.resolved.connection)
    wanted = list_reads(reachable.implied, reachable.cluster, rows)
    facts = await read_facts(reachable.client, reachable.cluster, wanted, caller=caller)
    locate = by_label(reachable.resolved.locate, reachable.desired)
    found = find_refusals(reachable.implied, facts, rows)
    return tuple(finding.locate(locate).diagnostic() for finding in found)
