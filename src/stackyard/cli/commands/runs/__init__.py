"""`stackyard runs`: what was run, by whom, with which outcome; and runs of other machines as they work."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["runs"]

_LATER = {
    "cancel": LazyCommand(
        module="stackyard.cli.commands.runs.cancel",
        name="cancel",
        help="Stop a run on any machine, as Ctrl-C on that machine does.",
    ),
    "follow": LazyCommand(
        module="stackyard.cli.commands.runs.follow",
        name="follow",
        help="Show the events of a run on any machine as they happen, until it ends.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.runs.list",
        name="list_runs",
        help="List runs, the newest first.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.runs.show",
        name="show",
        help="Show the record of a run: who started it, where, with which input, and its outcome.",
    ),
}


@group("runs", later=_LATER)
def runs() -> None:
    """Show, follow and cancel the runs of this site, on any machine.

    Every plan, apply, destroy, drift, import, create and test writes a record into the store of the site. All
    machines that share the store see the same records. Secrets are masked before a record is written. Records
    are kept for 90 days (STACKYARD_RUNS_DAYS).

    \b
    stackyard runs list                   the newest runs
    stackyard runs list --verb apply      the newest applies
    stackyard runs show last              the newest run
    stackyard runs follow 4f1c            watch a run on another machine
    stackyard runs cancel 4f1c            stop that run
    """  # noqa: D301 - click reads the control character
