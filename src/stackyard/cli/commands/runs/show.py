"""`stackyard runs show`: the record of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.runs.records import STYLES, open_store, run_document, versions_text
from stackyard.cli.commands.state.words import local_time
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state.run_records import RecordedRun

__all__ = ["show"]


@click.command("show", cls=Command)
@click.argument("run")
def show(run: str) -> Result:
    """Show the record of a run: who started it, where, with which input, and its outcome.

    RUN is an id, the start of an id, or `last`. With --json, the output includes all events of the run.

    \b
    stackyard runs show last
    stackyard runs show 4f1c --json
    """  # noqa: D301 - click reads the control character
    from stackyard.state.run_records import RunRecords  # lazy: only when this verb runs

    with open_store() as objects:
        records = RunRecords(objects)
        found = records.find(run)
        events = [event for _, event in records.events(found.id)]
    return Result(
        document={**run_document(found), "events": events},
        show=lambda writer: _show(writer, found, events),
    )


def _show(writer: TextWriter, run: RecordedRun, events: list[Mapping[str, Any]]) -> None:
    writer.line(f"{run.verb} of {run.target}: {run.outcome.value}", style=STYLES.get(run.outcome.value))
    facts = {
        "run": run.id,
        "by": f"{run.by} on {run.machine}, stackyard {run.version}",
        "started": local_time(run.started_at),
        "took": "-" if run.duration_s is None else f"{run.duration_s:.1f} s",
        "commit": run.commit or "-",
        "state": f"{run.state}, {versions_text(run)}",
        "events": str(len(events)),
    }
    for operation, counts in run.counts.items():
        facts[operation] = (
            f"{counts['add']} to add, {counts['change']} to change, {counts['remove']} to remove"
        )
    for name, text in facts.items():
        writer.line(f"  {name:<8} {text}")
    if run.error is not None:
        writer.line(f"  {run.error.get('summary', 'Error')}: {run.error.get('detail', '')}", style="red")
    for node in run.notes.get("nodes", ()):
        writer.line(f"  {node['name']}: {node['status']}")
