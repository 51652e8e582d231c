"""`stackyard gitops targets`: what jobs of a matrix are to plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["targets"]


@click.command("targets", cls=Command)
@click.argument("number", type=click.IntRange(1))
@click.option("--most", type=click.IntRange(1), metavar="N", help="List at most N targets.")
@click.option("--force", is_flag=True, help="List targets too that have a plan that still fits.")
@forge_options
@pass_session
def targets(session: Session, /, **values: Any) -> Result:
    """List the targets of pull request NUMBER that are to be planned, for jobs of a matrix.

    Each can be planned by a job of its own, with `stackyard gitops plan NUMBER --target TARGET`, at the same
    time. Targets that wait for the outputs of others, code that has to be allowed first and plans that still
    fit are left out; `stackyard gitops plan NUMBER` does the rest. Nothing is planned here.
    """
    from stackyard.cli.runs.gitops_matrix import run_gitops_targets  # lazy: the help needs none of it

    return session.run(run_gitops_targets(session, values))
