"""`stackyard runs list`: the newest runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.runs.records import STYLES, open_store, run_document
from stackyard.cli.commands.state.words import local_time, period
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state.run_records import RecordedRun

__all__ = ["list_runs"]

_OUTCOMES = ("running", "done", "failed", "refused", "stopped", "lost", "unreadable")


@click.command("list", cls=Command)
@click.option("--state", default="", metavar="PREFIX", help="Only runs on this state, or on states below it.")
@click.option("--verb", default="", metavar="VERB", help="Only runs of this command, such as `apply`.")
@click.option("--outcome", type=click.Choice(_OUTCOMES), help="Only runs with this outcome.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="The largest number of runs to list.",
)
def list_runs(state: str, verb: str, outcome: str | None, limit: int) -> Result:
    """List runs, the newest first.

    The outcome `lost` means that the run was killed, or that its machine failed. The next run on the same
    target completes its work. `refused` means that the guard refused the plan.

    \b
    stackyard runs list
    stackyard runs list --state env/dev --verb apply -n 5
    stackyard runs list --outcome running
    """  # noqa: D301 - click reads the control character
    from stackyard.state.run_records import Outcome, RunRecords  # lazy: only when this verb runs

    wanted = None if outcome is None else Outcome(outcome)
    with open_store() as objects:
        found = RunRecords(objects).list(limit=limit, state=state, verb=verb, outcome=wanted)
    return Result(
        document={"runs": [run_document(run) for run in found]}, show=lambda writer: _show(writer, found)
    )


def _show(writer: TextWriter, found: tuple[RecordedRun, ...]) -> None:
    if not found:
        writer.line("No runs are recorded.")
        return
    rows = [
        (
            run.id,
            local_time(run.started_at),
            run.verb,
            run.target,
            f"{run.by}@{run.machine}",
            "-" if run.duration_s is None else period(run.duration_s),
            run.outcome.value,
        )
        for run in found
    ]
    writer.table(("run", "started", "verb", "target", "by", "took", "outcome"), rows)
    for run in found:
        if run.outcome.value in ("failed", "refused", "unreadable") and run.error is not None:
            text = run.error.get("summary") or run.error.get("detail") or "It failed."
            writer.line(f"{run.id}: {text}", style=STYLES.get(run.outcome.value))
