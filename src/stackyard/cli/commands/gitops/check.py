"""`stackyard gitops check`: whether the base branch takes only what was reviewed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["check"]


@click.command("check", cls=Command)
@click.option("--fix", is_flag=True, help="Have the forge require what is missing.")
@click.option("--branch", metavar="NAME", help="The base branch (default: the default branch).")
@forge_options
@pass_session
def check(session: Session, /, **values: Any) -> Result:
    """Check that nothing reaches the base branch but what was planned and reviewed.

    The branch has to be protected, to refuse direct pushes, to require the status `stackyard`, and to require
    as many approvals as `gitops` in its stackyard.yaml says. The command exits with status 1 if one of these
    is missing. With --fix, it sets what is missing and leaves everything else of the protection as it is: the
    token needs the right to administer the repository.
    """
    from stackyard.cli.runs.gitops_check import run_gitops_check  # lazy: the help needs none of it

    return session.run(run_gitops_check(session, values))
