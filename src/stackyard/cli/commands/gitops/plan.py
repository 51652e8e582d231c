"""`stackyard gitops plan`: plan a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["plan_pull"]


@click.command("plan", cls=Command)
@click.argument("number", type=click.IntRange(1))
@click.option(
    "--target",
    "targets",
    metavar="TARGET",
    multiple=True,
    help="Plan only this target, and leave the plan for a later run that shows it; repeatable.",
)
@click.option(
    "--part",
    metavar="K/N",
    help="Divide the targets among N runs, plan those of run K, and leave the plans for a later run.",
)
@click.option("--force", is_flag=True, help="Plan targets again that have a plan that still fits.")
@forge_options
@pass_session
def plan_pull(session: Session, /, **values: Any) -> Result:
    """Plan the targets that pull request NUMBER changes, and show the plan in one comment.

    Each changed target is planned on the files that a merge with the base branch would have, and its plan is
    saved in the store. The comment is edited, never written twice. A status of the commit is set for each
    target, and one named `stackyard` for all, which branch protection can require. A target whose plan still
    fits is not planned again.

    With --target or --part, several runs plan targets of one pull request at the same time, as jobs of a CI.
    They change nothing at the forge. A run without them then takes their plans, makes those that are missing,
    and shows all.

    The rules are those of `gitops` in the stackyard.yaml of the base branch. The command exits with status 1
    if a target could not be planned, and with status 3 if the guard refuses one.
    """
    if values["targets"] or values["part"] is not None:
        from stackyard.cli.runs.gitops_matrix import run_gitops_some  # lazy: the help needs none of it

        return session.run(run_gitops_some(session, values))
    from stackyard.cli.runs.gitops import run_gitops_plan  # lazy: as above

    return session.run(run_gitops_plan(session, values))
