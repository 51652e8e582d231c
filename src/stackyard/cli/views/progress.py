"""What a human sees while it runs, on standard error: steps, what each waits for, and how long it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.base import events

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["OpenStep", "OpenSteps", "PlainProgress", "write_fact", "write_finished"]

_QUIET_LEVELS = frozenset({events.LogLevel.DEBUG})
_OF_A_STEP = (events.StepProgressed, events.StepFinished)
_STYLES = {
    events.LogLevel.WARNING: "yellow",
    events.LogLevel.ERROR: "red",
}
_MARKS = {
    events.Outcome.DONE: ("done", "green"),
    events.Outcome.FAILED: ("failed", "red"),
    events.Outcome.SKIPPED: ("skipped", "yellow"),
    events.Outcome.CANCELLED: ("stopped", "yellow"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStep:
    """A step that is under way."""

    title: str
    began: float
    waiting_for: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""

    def elapsed_s(self) -> float:
        """Return how long it has been running."""
        return time.monotonic() - self.began


class OpenSteps:
    """The steps under way, kept from the events."""

    def __init__(self) -> None:
        self._steps: dict[str, OpenStep] = {}

    def follow(self, event: events.Event) -> None:
        """Keep up with one event."""
        match event:
            case events.StepStarted(step=step, title=title):
                self._steps[step] = OpenStep(title=title, began=time.monotonic())
            case events.StepWaiting(step=step, waiting_for=waiting_for):
                self._change(step, lambda known: replace(known, waiting_for=waiting_for))
            case events.StepProgressed(step=step, done=done, total=total, unit=unit):
                self._change(step, lambda known: replace(known, done=done, total=total, unit=unit))
            case events.StepFinished(step=step):
                self._steps.pop(step, None)

    def __getitem__(self, step: str) -> OpenStep | None:
        return self._steps.get(step)

    def all(self) -> list[OpenStep]:
        """Return them in the order in which they began; safe to call from the drawing thread."""
        return list(self._steps.values())

    def _change(self, step: str, change: Callable[[OpenStep], OpenStep]) -> None:
        if (known := self._steps.get(step)) is not None:
            self._steps[step] = change(known)


class PlainProgress:
    """One line a fact, for logs and pipes.

    Args:
        writer: Where to.
        is_verbose: Whether debug lines are shown.
    """

    def __init__(self, writer: TextWriter, *, is_verbose: bool) -> None:
        self._writer = writer
        self._is_verbose = is_verbose
        self._steps = OpenSteps()

    def emit(self, event: events.Event) -> None:
        """Write the line of an event, if it has one."""
        known = self._steps[event.step] if isinstance(event, _OF_A_STEP) else None
        self._steps.follow(event)
        match event:
            case events.StepStarted(title=title):
                self._writer.line(f"{title} ...")
            case events.StepWaiting(waiting_for=waiting_for):
                self._writer.line(f"  waiting for {waiting_for}")
            case events.StepProgressed():
                self._write_progress(event, known)
            case events.StepFinished():
                write_finished(self._writer, event, known)
            case _:
                write_fact(self._writer, event, is_verbose=self._is_verbose)
        self._writer.flush()

    def close(self) -> None:
        """Do nothing: every line stands on its own."""

    def _write_progress(self, event: events.StepProgressed, known: OpenStep | None) -> None:
        """Write a line for every tenth of the way, so that a log of long work shows that it moves."""
        if event.total and known is not None:
            tenth = 10 * event.done // event.total
            if tenth > 10 * known.done // event.total:
                self._writer.line(f"  {10 * tenth} % ({event.done} of {event.total} {event.unit})")


def write_finished(writer: TextWriter, event: events.StepFinished, known: OpenStep | None) -> None:
    """Write how a step ended."""
    word, style = _MARKS[event.outcome]
    title = known.title if known is not None else event.step
    writer.line(f"{title}: {word} ({event.elapsed_s:.1f} s)", style=style)


def write_fact(writer: TextWriter, event: events.Event, *, is_verbose: bool) -> None:
    """Write an event that is complete in itself: a log line, a finding, a resource."""
    match event:
        case events.LogLine(level=level, text=text):
            if is_verbose or level not in _QUIET_LEVELS:
                writer.line(f"  {text}", style=_STYLES.get(level))
        case events.DiagnosticFound(severity=severity, summary=summary):
            place = f" ({event.file}:{event.line})" if event.file and event.line else ""
            writer.line(f"  {severity}: {summary}{place}", style="red" if severity == "error" else "yellow")
        case events.ResourcePlanned(address=address, action=action):
            writer.line(f"  {action}: {address}")
        case events.ResourceApplied(address=address, action=action, phase=phase):
            if phase is not events.ApplyPhase.RUNNING or is_verbose:
                writer.line(f"  {address}: {action} {phase.value} ({event.elapsed_s:.0f} s)")
        case events.PlanCounted(operation=operation):
            counts = f"{event.add} to add, {event.change} to change, {event.remove} to remove"
            writer.line(f"  {operation}: {counts}")
