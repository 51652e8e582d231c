"""Running steps along their dependencies: look, do what is missing, prove; and how long each took."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base import events, schedule
from stackyard.base.backoff import Backoff
from stackyard.base.dag import Graph
from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.errors import StackyardError
from stackyard.bootstrap.step import Presence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from stackyard.bootstrap.step import Observation, Step

__all__ = ["ColdBootError", "PlannedStep", "StepUnknownError", "Timeline", "TimelineRow", "run_steps"]

_PAUSES = Backoff(0.1, 2.0)


class ColdBootError(StackyardError):
    """Steps of a cold boot failed; those that do not depend on them were done."""

    code = "E-BOOTSTRAP-FAILED"
    summary = "The cluster is not up"
    default_remedy = "Correct what the steps name, and run the command again: it continues from there."

    def __init__(self, errors: Mapping[str, StackyardError], timeline: Timeline) -> None:
        super().__init__("\n".join(f"{name}: {error.detail}" for name, error in errors.items()))
        self.by_step = dict(errors)
        self.errors = tuple(errors.values())
        self.timeline = timeline

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Each step's error, with its code and its remedy."""
        return tuple(
            Diagnostic(
                kind=Kind(code=error.code, summary=error.summary, remedy=error.remedy),
                detail=error.detail,
                where=error.where,
            )
            for error in self.errors
        )


class StepUnknownError(StackyardError):
    """What a step would make could not be seen for as long as it was waited for."""

    code = "E-BOOTSTRAP-UNKNOWN"
    summary = "A part of the cluster cannot be seen"
    default_remedy = "Make it visible from here, and run the command again: it continues from there."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step in the graph.

    Attributes:
        step: The step.
        after: The names of the steps that come before it.
        title: What it does, for a person.
        patience_s: How long its result may stay unseen, before that is an error.
        is_change: Whether it changes something; False for one that only waits.
    """

    step: Step
    after: tuple[str, ...] = ()
    title: str = ""
    patience_s: float = 600.0
    is_change: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """How a step ended.

    Attributes:
        name: The step.
        outcome: `present` where nothing was to do, `done`, `failed` or `skipped`.
        began_s: When it began, from the start of the run.
        elapsed_s: How long it took.
        detail: Why it failed, or which steps it was skipped for.
        is_critical: Whether the run would have been shorter without it.
        is_change: Whether it changed something, if it had something to do.
    """

    name: str
    outcome: str
    began_s: float = 0.0
    elapsed_s: float = 0.0
    detail: str = ""
    is_critical: bool = False
    is_change: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All steps of a run, in the order in which they began; those that did not begin come last.

    Attributes:
        rows: The steps.
        is_changed: Whether something was changed that no row says.
    """

    rows: tuple[TimelineRow, ...]
    is_changed: bool = False

    @property
    def has_changes(self) -> bool:
        """Whether a step changed something; one that waited for what others do did not."""
        return self.is_changed or any(row.outcome == "done" and row.is_change for row in self.rows)

    def join(self, later: Timeline) -> Timeline:
        """Return this and a run that began when this one ended, as one."""
        end = max((row.began_s + row.elapsed_s for row in self.rows), default=0.0)
        moved = (replace(row, began_s=row.began_s + end) for row in later.rows)
        return Timeline(rows=(*self.rows, *moved), is_changed=self.is_changed or later.is_changed)


async def run_steps(steps: Iterable[PlannedStep], *, emit: events.Emit = events.ignore) -> Timeline:
    """Run steps, each after all that it depends on; a step that fails stops only those that depend on it.

    Raises:
        ColdBootError: Steps failed; the error carries each reason and the timeline.
    """
    planned = {one.step.name: one for one in steps}
    graph = Graph.from_dependencies({name: one.after for name, one in planned.items()})
    rows, work = _recording(planned, emit)
    # Most of them only wait, and one that waits must not keep another from running: what they do at the same
    # time is bounded where calls are made.
    results = await schedule.walk(graph, work, parallel=max(1, len(planned)))
    errors = dict[str, StackyardError]()
    for name, settled in results.settled.items():
        if isinstance(settled, schedule.Failed):
            if not isinstance(settled.error, StackyardError):
                raise settled.error
            errors[name] = settled.error
        elif isinstance(settled, schedule.Skipped):
            rows[name] = TimelineRow(name=name, outcome="skipped", detail=", ".join(settled.because))
    timeline = _mark_critical(Timeline(rows=tuple(_in_order(rows))), planned)
    if errors:
        raise ColdBootError(errors, timeline)
    return timeline


def _recording(
    planned: Mapping[str, PlannedStep], emit: events.Emit
) -> tuple[dict[str, TimelineRow], Callable[[str], Awaitable[None]]]:
    """Return what runs a step, and the rows that it fills in."""
    began, rows = time.monotonic(), dict[str, TimelineRow]()

    async def work(name: str) -> None:
        start = time.monotonic()
        outcome, detail = "failed", ""
        try:
            outcome = await _run_step(planned[name], emit)
        except StackyardError as err:
            detail = err.detail
            raise
        finally:
            rows[name] = TimelineRow(
                name=name,
                outcome=outcome,
                began_s=start - began,
                elapsed_s=time.monotonic() - start,
                detail=detail,
                is_change=planned[name].is_change,
            )

    return rows, work


async def _run_step(one: PlannedStep, emit: events.Emit) -> str:
    name = one.step.name
    with events.step(emit, name, one.title or name) as running:
        found = await _look(one, running)
        if found.presence is Presence.PRESENT:
            return "present"
        running.log(found.reason)
        await one.step.do(running.waiting)
        await one.step.prove(running.waiting)
        return "done"


async def _look(one: PlannedStep, running: events.Step) -> Observation:
    """Look until something can be said: what cannot be seen is never taken for absent.

    Raises:
        StepUnknownError: Nothing can be said in time.
    """
    ends = time.monotonic() + one.patience_s
    for pause_s in _PAUSES:
        found = await one.step.look()
        if found.presence is not Presence.UNKNOWN:
            return found
        running.waiting(found.reason)
        if time.monotonic() > ends:
            raise StepUnknownError(f"{one.step.name}: {found.reason}")
        await asyncio.sleep(pause_s)
    raise AssertionError("pauses have no end")


def _in_order(rows: Mapping[str, TimelineRow]) -> list[TimelineRow]:
    return sorted(rows.values(), key=lambda row: (row.outcome == "skipped", row.began_s))


def _mark_critical(timeline: Timeline, planned: Mapping[str, PlannedStep]) -> Timeline:
    """Mark the steps that the end of the run waited for: from the last one back to the first."""
    ends = {row.name: row.began_s + row.elapsed_s for row in timeline.rows if row.outcome != "skipped"}
    critical: set[str] = set()
    current = max(ends, key=lambda name: ends[name], default=None)
    while current is not None:
        critical.add(current)
        before = [name for name in planned[current].after if name in ends]
        current = max(before, key=lambda name: ends[name], default=None)
    rows = tuple(replace(row, is_critical=row.name in critical) for row in timeline.rows)
    return Timeline(rows=rows)
