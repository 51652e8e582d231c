"""`stackyard apply`: make it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options, repair_options, target_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["apply"]


@click.command("apply", cls=Command)
@target_options
@permit_options
@repair_options
@click.option(
    "--plan",
    "plan_file",
    metavar="FILE",
    help="Apply the plan that `stackyard plan --out` saved: a file, or `store:ID`.",
)
@click.option("--no-verify", is_flag=True, help="Do not wait until the guests are up.")
@pass_session
def apply(session: Session, /, **values: Any) -> Result:
    """Plan TARGET, run the guard, apply exactly that plan, and verify that the guests are up.

    If the guard refuses the plan, nothing changes. A saved plan applies only if the input, the state, the
    tools and stackyard itself are the same as when the plan was created.
    """
    with pause_garbage_collection():
        from stackyard.cli.runs.apply import run_apply  # lazy: the help needs none of it

    return session.run(run_apply(session, values))
