"""`stackyard plan`: what would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options, repair_options, target_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["plan"]


@click.command("plan", cls=Command)
@target_options
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
    """
    with pause_garbage_collection():
        from stackyard.cli.runs.plan import run_plan  # lazy: the help needs none of it

    return session.run(run_plan(session, values))
