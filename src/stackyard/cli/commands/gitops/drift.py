"""`stackyard gitops drift`: what is no longer as the base branch says, as issues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.gitops.options import forge_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["drift"]


@click.command("drift", cls=Command)
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if there is drift.")
@forge_options
@pass_session
def drift(session: Session, /, **values: Any) -> Result:
    """Compare targets with the base branch, and keep one issue for each that differs.

    Each target that was applied, or each TARGET, is planned on the last commit of the default branch. An
    issue is opened for a target that differs, with the plan that would mend it. It is edited when that plan
    changes, opened again if somebody closed it before, and closed when the target is as the base branch
    says. Nothing is applied. Run it as often as you like: what did not change is not written again.

    The command exits with status 1 if a target could not be planned; its issue stays as it was.
    """
    from stackyard.cli.runs.gitops_drift import run_gitops_drift  # lazy: the help needs none of it

    return session.run(run_gitops_drift(session, values))
