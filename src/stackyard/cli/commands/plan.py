"""`stackyard plan`: what would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.completions import complete_targets
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options, reach_options, repair_options
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

__all__ = ["plan"]


@click.command("plan", cls=Command)
@click.argument("target", required=False, shell_complete=complete_targets)
@engine_arguments
@reach_options
@select_options
@permit_options
@repair_options
@click.option(
    "--out",
    metavar="FILE",
    help="Save the plan, encrypted, for `stackyard apply --plan FILE`; `store:` saves it in the store.",
)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there are changes to apply.")
@pass_session
def plan(session: Session, /, **values: Any) -> Result:
    """Show what would change for TARGET (`env:dev`, or `dev`), and what the guard refuses.

    Guests and the state do not change. If the guard refuses a change, the plan shows the option that allows
    it, and the command exits with status 3. `apply` stops at the same point.

    \b
    stackyard plan dev
    stackyard plan stack:onprem/server_a -- -target=module.web
    stackyard plan --changed

    A stack is a folder of your own OpenTofu code. Arguments after `--` are passed to OpenTofu;
    those that would bypass the lock, the store or the guard are refused.
    """  # noqa: D301 - click reads the control character
    if names_whole_cluster(values):
        with pause_garbage_collection():
            from stackyard.cli.runs.hypervisors import run_on_files  # lazy: as above
            from stackyard.cli.runs.plan import run_plan  # lazy: the help needs none of it

        return session.run(run_on_files(session, values, run_plan))
    if names_stacks(values):
        with pause_garbage_collection():
            if selects_stacks(values):
                from stackyard.cli.runs.stacks import many  # lazy: the help needs none of it

                work = many.run_stacks_plan
            else:
                from stackyard.cli.runs.stacks import one  # lazy: as above

                work = one.run_stack_plan
        return session.run(work(session, values))
    refuse_stack_options(values)
    with pause_garbage_collection():
        from stackyard.cli.runs.plan import run_plan  # lazy: the help needs none of it

    if names_shared(values):
        from stackyard.cli.runs.shared import run_shared  # lazy: as above

        return session.run(run_shared(session, values, run_plan))
    return session.run(run_plan(session, values))
