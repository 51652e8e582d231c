"""Several stacks in the order of their dependencies: side by side where nothing is between them."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base import events, schedule
from stackyard.base.errors import StackyardError
from stackyard.guard import GuardRefusedError
from stackyard.path.stacks.inputs import InputsMissingError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stackyard.base.dag import Graph
    from stackyard.engine.tofu import Applied
    from stackyard.path.stacks.plan import StackPlan

__all__ = ["StackOutcome", "StackStatus", "run_stacks"]


class StackStatus(enum.StrEnum):
    """How a stack ended in a command on several."""

    UNCHANGED = "unchanged"
    PLANNED = "planned"
    APPLIED = "applied"
    REFUSED = "refused"
    WAITING = "waiting"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOutcome:
    """What became of a stack.

    Attributes:
        name: The stack.
        status: How it ended.
        plan: Its plan, where one was made.
        applied: What was changed.
        error: Why it failed, or was refused.
        waiting_for: The stacks whose outputs or end it waits for.
        elapsed_s: How long it took.
        redact: Masks secrets in what is shown of the plan.
    """

    name: str
    status: StackStatus
    plan: StackPlan | None = None
    applied: Applied | None = None
    error: StackyardError | None = None
    waiting_for: tuple[str, ...] = ()
    elapsed_s: float = 0.0
    redact: Callable[[str], str] = str

    @property
    def is_refused(self) -> bool:
        """Whether an apply of its plan would be refused."""
        return self.plan is not None and bool(self.plan.verdict.refused)


async def run_stacks(
    graph: Graph[str],
    work: Callable[[str], Awaitable[StackOutcome]],
    *,
    parallel: int,
    emit: events.Emit = events.ignore,
) -> tuple[StackOutcome, ...]:
    """Do something with every stack, each after those that it depends on.

    A stack that failed, was refused or waits skips its dependents, and only these.

    Args:
        graph: The stacks.
        work: What to do with one.
        parallel: How many at once.
        emit: Takes the events.
    """

    async def attempt(name: str) -> StackOutcome:
        began_s = time.monotonic()
        try:
            found = await work(name)
        except StackyardError as err:
            raise _EndedError(_explain(name, err, time.monotonic() - began_s)) from err
        if found.status in (StackStatus.REFUSED, StackStatus.WAITING, StackStatus.FAILED):
            raise _EndedError(found)
        return found

    results = await schedule.walk(graph, attempt, parallel=parallel)
    return tuple(_outcome(name, end) for name, end in results.settled.items())


class _EndedError(Exception):
    """Carries how a stack ended that the next ones cannot continue from."""

    def __init__(self, outcome: StackOutcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


def _explain(name: str, err: StackyardError, elapsed_s: float) -> StackOutcome:
    if isinstance(err, InputsMissingError):
        return StackOutcome(
            name=name,
            status=StackStatus.WAITING,
            error=err,
            waiting_for=err.waiting_for,
            elapsed_s=elapsed_s,
        )
    status = StackStatus.REFUSED if isinstance(err, GuardRefusedError) else StackStatus.FAILED
    return StackOutcome(name=name, status=status, error=err, elapsed_s=elapsed_s)


def _outcome(name: str, end: schedule.Settled[str, StackOutcome]) -> StackOutcome:
    if isinstance(end, schedule.Done):
        return end.value
    if isinstance(end, schedule.Failed):
        if isinstance(end.error, _EndedError):
            return end.error.outcome
        raise end.error
    return StackOutcome(name=name, status=StackStatus.SKIPPED, waiting_for=end.because)
