"""`stackyard drift`: what is no longer as it was applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.completions import complete_targets
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.shared_target import names_shared
from stackyard.cli.stack_options import (
    engine_arguments,
    names_stacks,
    names_whole_cluster,
    refuse_stack_options,
    select_options,
    selects_stacks,
)

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["drift"]


@click.command("drift", cls=Command)
@click.argument("target", required=False, shell_complete=complete_targets)
@engine_arguments
@reach_options
@select_options
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there is drift.")
@pass_session
def drift(session: Session, /, **values: Any) -> Result:
    """Show where the cluster differs from the input of TARGET, and list unmanaged guests.

    This changes nothing. `stackyard apply` corrects the drift.
    """
    if names_whole_cluster(values):
        with pause_garbage_collection():
            from stackyard.cli.runs.drift import run_drift  # lazy: the help needs none of it
            from stackyard.cli.runs.hypervisors import run_on_files  # lazy: as above

        return session.run(run_on_files(session, values, run_drift))
    if names_stacks(values):
        with pause_garbage_collection():
            if selects_stacks(values):
                from stackyard.cli.runs.stacks import many  # lazy: the help needs none of it

                work = many.run_stacks_drift
            else:
                from stackyard.cli.runs.stacks import one  # lazy: as above

                work = one.run_stack_drift
        return session.run(work(session, values))
    refuse_stack_options(values)
    with pause_garbage_collection():
        from stackyard.cli.runs.drift import run_drift  # lazy: the help needs none of it

    if names_shared(values):
        from stackyard.cli.runs.shared import run_shared  # lazy: as above

        return session.run(run_shared(session, values, run_drift))
    return session.run(run_drift(session, values))
