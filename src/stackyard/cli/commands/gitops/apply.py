"""`stackyard gitops apply`: apply what was reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["apply_pull"]


@click.command("apply", cls=Command)
@click.argument("number", type=click.IntRange(1), required=False)
@click.option(
    "--commit",
    metavar="COMMIT",
    help="Instead of NUMBER: the pull request that this commit of the base branch came with, if any.",
)
@click.option(
    "--target", "targets", metavar="TARGET", multiple=True, help="Apply only this target; repeatable."
)
@forge_options
@pass_session
def apply_pull(session: Session, /, **values: Any) -> Result:
    """Apply what was reviewed in pull request NUMBER, and nothing else.

    A target is applied if the pull request is merged, the merged files are those that were planned, and the
    plan that the comment shows has everything that the base branch requires: approvals, owners, checks, and
    the permission for each thing that is destroyed. Everything else is planned again and shown, and needs
    approvals of its own. What was applied is not applied again, so that the command may be repeated.

    The command exits with status 1 if a target failed.
    """
    from stackyard.cli.runs.gitops import run_gitops_apply  # lazy: the help needs none of it

    return session.run(run_gitops_apply(session, values))
