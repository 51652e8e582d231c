"""`stackyard scenario`: named pieces of work on machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.cli.command import group
from stackyard.cli.result import Result
from stackyard.cli.scenario_options import list_renamed_options, options_of, scenario_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.scenario.launch import Launch
    from stackyard.scenario.model import Scenario
    from stackyard.scenario.outcome import ScenarioOutcome

__all__ = ["scenario"]

_STYLES = {"passed": "green", "failed": "red", "skipped": "yellow"}


@group("scenario")
def scenario() -> None:
    """Run named pieces of work on machines: install Proxmox VE, create users, build images.

    Each scenario consists of phases. A phase checks first and then does what is missing: you can repeat a
    run, or continue it after a failure. Legacy options are accepted: `stackyard --scenario NAME`,
    `--list-scenarios`, `--list-phases`.
    """


@scenario.command("list")
def list_scenarios() -> Result:
    """Show every scenario, how long it usually takes and what it does."""
    from stackyard.scenario.catalogue import SCENARIOS  # lazy: the actions, only when this verb runs

    def show(writer: TextWriter) -> None:
        rows = [(one.name, _duration(one.expected_s), one.summary) for one in SCENARIOS]
        writer.table(("scenario", "runtime", "description"), rows)

    return Result(document={"scenarios": [one.document() for one in SCENARIOS]}, show=show)


def _duration(seconds: float) -> str:
    return f"~{seconds:.0f}s" if seconds < 60 else f"~{seconds / 60:.0f}m"


@scenario.command("phases")
@click.argument("name")
def list_phases(name: str) -> Result:
    """Show the phases of a scenario, in order."""
    from stackyard.scenario.catalogue import find_scenario  # lazy: as above

    found = find_scenario(name)

    def show(writer: TextWriter) -> None:
        writer.table(("phase", "description"), [(phase.name, phase.description) for phase in found.phases])

    return Result(document=_phases_document(found), show=show)


def _phases_document(found: Scenario) -> dict[str, Any]:
    phases = [{"name": phase.name, "description": phase.description} for phase in found.phases]
    return {"scenario": found.name, "phases": phases}


@scenario.command("run")
@click.argument("name")
@scenario_options
@pass_session
def run(session: Session, /, name: str, **values: Any) -> Result:
    """Run a scenario.

    If a phase fails, the scenario stops. Run it again, and it detects what is already done. Ctrl-C also stops
    what runs on the other machine. With --json, the result has the fields of homestak: scenario, success,
    duration_seconds, phases, context, and error if there was one.

    \b
    stackyard scenario run pve-setup --remote 10.0.12.5
    stackyard scenario run user-setup -H father
    stackyard scenario run packer-build-fetch --remote 10.0.12.5 --templates debian-12-custom
    """  # noqa: D301 - click reads the control character
    from stackyard.scenario.launch import prepare  # lazy: the actions, only when this verb runs

    for old, new in list_renamed_options():
        text = f"{old} is called {new} now; both work."
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="scenario", text=text))
    launch = prepare(
        name,
        options_of(values),
        site=values["site"],
        context_file=_path(values["context_file"]),
        report_folder=_path(values["report_dir"]),
        emit=session.emit,
    )
    if values["dry_run"]:
        return _preview(launch)
    if launch.scenario.is_disruptive and not values["yes"]:
        _confirm(launch)
    outcome = session.run(launch.run())
    return Result(
        document=outcome.document(plain_error=values["json_output"]),
        show=lambda writer: _show(writer, outcome),
        status=outcome.status,
    )


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _confirm(launch: Launch) -> None:
    """Ask a user at a terminal; a script is not asked."""
    from stackyard.scenario.failures import NotConfirmedError  # lazy: only when someone is asked

    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return
    where = launch.context.machine.shown
    if not click.confirm(f"{launch.scenario.name} changes {where} and may restart it. Go on?", err=True):
        raise NotConfirmedError(f"`{launch.scenario.name}` was not run on {where}.")


def _preview(launch: Launch) -> Result:
    skipped = launch.context.options.skip
    rows = [
        (phase.name, "skipped" if phase.name in skipped else "would run", phase.description)
        for phase in launch.scenario.phases
    ]

    def show(writer: TextWriter) -> None:
        writer.line(f"{launch.scenario.name} on {launch.context.machine.shown} (nothing is done):")
        writer.table(("phase", "", "description"), rows)

    return Result(
        document={
            "scenario": launch.scenario.name,
            "dry_run": True,
            "host": launch.context.machine.shown,
            "timeout_seconds": launch.context.options.timeout_s or launch.scenario.timeout_s,
            "phases": [{"name": row[0], "status": row[1], "description": row[2]} for row in rows],
        },
        show=show,
    )


def _show(writer: TextWriter, outcome: ScenarioOutcome) -> None:
    for phase in outcome.phases:
        style = _STYLES[phase.status.value]
        writer.line(f"{phase.name}: {phase.status.value} ({phase.took_s:.1f} s)", style=style)
        if phase.message:
            for line in phase.message.splitlines():
                writer.line(f"    {line}")
    if outcome.error is None:
        writer.line(f"{outcome.scenario} on {outcome.machine} is done.", style="green")
    else:
        writer.line(f"{outcome.scenario} on {outcome.machine} failed [{outcome.error.code}].", style="red")
        writer.lines(outcome.error.remedy)
    for path in outcome.reports:
        writer.line(f"Report: {path}")
