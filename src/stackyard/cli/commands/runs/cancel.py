"""`stackyard runs cancel`: ask a run to stop."""

from __future__ import annotations

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.runs.records import open_store, run_document
from stackyard.cli.commands.state.store import current_actor
from stackyard.cli.result import Result

__all__ = ["cancel"]


@click.command("cancel", cls=Command)
@click.argument("run")
def cancel(run: str) -> Result:
    """Stop a run on any machine, as Ctrl-C on that machine does.

    RUN is an id, or the start of one. The run finishes the step in progress, stores its state and releases
    its lock. The command does not wait for that; `stackyard runs follow` shows when the run has ended.
    """
    from stackyard.state.run_records import Outcome, RunRecords  # lazy: only when this verb runs

    with open_store() as objects:
        records = RunRecords(objects)
        found = records.find(run)
        if found.outcome is not Outcome.RUNNING:
            raise UsageError(f"The run {found.id} is not running: its outcome is `{found.outcome.value}`.")
        records.ask_to_stop(found, current_actor().principal)
    text = f"The run {found.id} ({found.verb} of {found.target} on {found.machine}) was asked to stop."
    return Result(document=run_document(found), show=lambda writer: writer.line(text))
