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
@forge_options
@pass_session
def report(session: Session, /, **values: Any) -> Result:
    """Report newer versions of the providers and modules of the base branch in an issue for each quarter.

    The issue is edited when it changes, and closed when nothing is newer. Nothing is upgraded: `stackyard
    stack upgrade --write` writes the minor versions, for a pull request.
    """
    from stackyard.cli.runs.gitops_report import run_gitops_report  # lazy: the help needs none of it

    return session.run(run_gitops_report(session, values))
