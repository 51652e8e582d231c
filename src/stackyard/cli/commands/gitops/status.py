"""`stackyard gitops status`: what is known of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["status"]


@click.command("status", cls=Command)
@click.argument("number", type=click.IntRange(1))
@forge_options
@pass_session
def status(session: Session, /, **values: Any) -> Result:
    """Show what is known of pull request NUMBER: each target with its plan, and what became of it.

    Nothing is planned, and nothing is changed at the forge. With --json, the plans are whole, also where the
    comment had no room for them.
    """
    from stackyard.cli.runs.gitops import run_gitops_status  # lazy: the help needs none of it

    return session.run(run_gitops_status(session, values))
