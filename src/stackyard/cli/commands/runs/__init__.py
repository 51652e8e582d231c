"""`stackyard runs`: what was run, by whom, with which outcome; and runs of other machines as they work."""

from __future__ import annotations

from stackyard.cli.command import LazyCommand, group

__all__ = ["runs"]

_LATER = {
    "cancel": LazyCommand(
        module="stackyard.cli.commands.runs.cancel",
        name="cancel",
        help="Ask RUN, on any machine, to stop cleanly, as Ctrl-C there does.",
    ),
    "follow": LazyCommand(
        module="stackyard.cli.commands.runs.follow",
        name="follow",
        help="Show the events of RUN as they happen, until it ends.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.runs.list",
        name="list_runs",
        help="Show the newest runs, the newest first.",
    ),
    "show": LazyCommand(
        module="stackyard.cli.commands.runs.show",
        name="show",
        help="Show the record of RUN: its id, the start of its id, or `last`.",
    ),
}


@group("runs", later=_LATER)
def runs() -> None:
    """Show what was run on this site: who, where, on which input, with which outcome.

    Every plan, apply, destroy, drift, import, create and test leaves a record in the store of the site, so
    that all machines that share the store see the same. Secrets are masked before a record is written.
    Records are kept for 90 days (STACKYARD_RUNS_DAYS).

    \b
    stackyard runs list                   the newest runs
    stackyard runs list --verb apply      the newest applies
    stackyard runs show last              the newest run
    stackyard runs follow 4f1c            watch a run of another machine
    stackyard runs cancel 4f1c            ask it to stop cleanly
    """  # noqa: D301 - click reads the control character
