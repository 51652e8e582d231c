"""Progress without a terminal: one line a fact, in the order of the events."""

from __future__ import annotations

import io

from stackyard.base import events
from stackyard.cli.views.progress import PlainProgress
from stackyard.cli.views.text_writer import TextWriter


def shown(*happened: events.Event, is_verbose: bool = False) -> list[str]:
    stream = io.StringIO()
    progress = PlainProgress(TextWriter(stream, colour=False), is_verbose=is_verbose)
    for event in happened:
        progress.emit(event)
    return stream.getvalue().splitlines()


def progressed(done: int) -> events.Event:
    return events.StepProgressed(step="s", done=done, total=200, unit="packages")


STARTED = events.StepStarted(step="s", title="Build it")


def test_a_step_shows_its_start_what_it_waits_for_and_its_end() -> None:
    assert shown(
        STARTED,
        events.StepWaiting(step="s", waiting_for="the compiler"),
        events.StepFinished(step="s", outcome=events.Outcome.DONE, detail="", elapsed_s=1.25),
    ) == ["Build it ...", "  waiting for the compiler", "Build it: done (1.2 s)"]


def test_long_work_shows_every_tenth_of_the_way_and_no_more() -> None:
    assert shown(STARTED, *(progressed(done) for done in range(1, 201)))[1:] == [
        f"  {percent} % ({2 * percent} of 200 packages)" for percent in range(10, 101, 10)
    ]


def test_a_failed_step_says_so() -> None:
    finished = events.StepFinished(step="s", outcome=events.Outcome.FAILED, detail="no", elapsed_s=0)
    assert shown(STARTED, finished)[-1] == "Build it: failed (0.0 s)"


def test_debug_lines_need_verbose() -> None:
    line = events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text="deep inside")
    assert shown(line) == []
    assert shown(line, is_verbose=True) == ["  deep inside"]


def test_a_finding_shows_its_place() -> None:
    found = events.DiagnosticFound(
        severity="error", code="E-X", summary="Wrong", detail="", file="main.tf", line=3, column=1
    )
    assert shown(found) == ["  error: Wrong (main.tf:3)"]


def test_resources_and_totals_have_a_line_each() -> None:
    assert shown(
        events.ResourcePlanned(address="vm.a", action="create"),
        events.ResourceApplied(address="vm.a", action="create", phase=events.ApplyPhase.DONE, elapsed_s=2),
        events.PlanCounted(operation="plan", add=1, change=2, remove=3, imported=0),
    ) == [
        "  create: vm.a",
        "  vm.a: create done (2 s)",
        "  plan: 1 to add, 2 to change, 3 to remove",
    ]
