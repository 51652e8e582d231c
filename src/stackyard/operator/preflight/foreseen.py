"""What the table of the guard finds on a host: the same that a plan would be refused for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.guard.foresight import TABLE, find_refusals, questions
from stackyard.path.foresight import caller_of, read_facts
from stackyard.path.places import by_label

if TYPE_CHECKING:
    from stackyard.diagnostics import Diagnostic
    from stackyard.operator.preflight.scene import Scene

__all__ = ["foreseen"]


async def foreseen(scene: Scene, name: str) -> tuple[Diagnostic, ...]:
    """Return the findings of the rows of the table that belong to a check.

    Raises:
        ProxmoxError: The host does not answer.
    """
    rows = [row for row in TABLE if row.name == name]
    caller = caller_of(scene.resolved.connection)
    wanted = questions(scene.implied, scene.cluster, rows)
    facts = await read_facts(scene.client, scene.cluster, wanted, caller=caller)
    locate = by_label(scene.resolved.locate, scene.desired)
    found = find_refusals(scene.implied, facts, rows)
    return tuple(finding.located(locate).diagnostic() for finding in found)
