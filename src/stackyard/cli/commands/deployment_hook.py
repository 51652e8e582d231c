"""`stackyard deployment hook`."""

from __future__ import annotations

from pathlib import Path

import click

from stackyard.cli.command import Command
from stackyard.cli.deployments.options import place_of
from stackyard.cli.hook_result import hook_result
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import UsageError

__all__ = ["hook"]


@click.command("hook", cls=Command)
@click.option("--install", is_flag=True, help="Have git do this before each commit.")
@click.option("--uninstall", is_flag=True, help="Have git do this no longer; other checks stay.")
@pass_session
def hook(session: Session, /, install: bool, uninstall: bool) -> Result:
    """Refuse a deployment.json in git, and a terraform.tfvars or *.auto.tfvars beside the object.

    The same is refused by `stackyard plan deployment` and `apply`. As a hook it keeps the file out of the
    first commit; a pre-commit hook that is there is kept and runs first.
    """
    from stackyard.deployment.worktree import HOOK_CHECK, require_clean  # lazy: only when this verb runs
    from stackyard.git.hook import install_check, remove_check  # lazy: as above

    if install and uninstall:
        raise UsageError("Give either --install or --uninstall.")
    if install or uninstall:
        change = install_check if install else remove_check
        return hook_result(session.run(change(Path.cwd(), HOOK_CHECK)))
    place = place_of(None)
    session.run(require_clean(place))
    return Result(
        document={"root": str(place.root), "is_clean": True},
        show=lambda paper: paper.line(f"{place.root} holds neither a deployment.json in git nor tfvars."),
    )
