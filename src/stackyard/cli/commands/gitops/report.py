"""`stackyard gitops report`: newer versions of providers and modules, as an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["report"]


@click.command("report", cls=Command)
@click.option(
    "--pulls",
    "has_pulls",
    is_flag=True,
    help="Open a pull request for each stack that has newer patch or minor versions, or update it.",
)
@forge_options
@pass_session
def report(session: Session, /, **values: Any) -> Result:
    """Report newer versions of providers and modules in an issue for each quarter.

    They are those of the base branch. The issue is edited when it changes, and closed when nothing is newer.
    Nothing is upgraded.

    With --pulls, each stack with newer patch or minor versions gets one pull request, with what `stackyard
    stack upgrade --write` writes. It is updated when there are newer ones, unless somebody else committed to
    its branch, and it is not opened again with versions that somebody closed. The command exits with status 1
    if a stack could not be upgraded.
    """
    from stackyard.cli.runs.gitops_report import run_gitops_report  # lazy: the help needs none of it

    return session.run(run_gitops_report(session, values))
