"""`stackyard deployment hook`."""

from __future__ import annotations

from pathlib import Path

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of
from stackyard.cli.hook_result import hook_result
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

__all__ = ["hook"]


@click.command("hook", cls=Command)
@click.option("--install", is_flag=True, help="Run this check before each commit, as a git hook.")
@click.option("--uninstall", is_flag=True, help="Remove this check from the git hook; other checks stay.")
@pass_session
def hook(session: Session, /, install: bool, uninstall: bool) -> Result:
    """Refuse a deployment.json in git, and a terraform.tfvars or *.auto.tfvars beside the object.

    `stackyard plan deployment` and `apply` refuse the same. As a hook, this keeps the file out of the first
    commit. An existing pre-commit hook is kept and runs first.
    """
    from stackyard.clients.git.hook import install_check, remove_check  # lazy: as above
    from stackyard.sources.deployment.worktree import (  # lazy: only when this verb runs
        HOOK_CHECK,
        require_clean,
    )

    if install and uninstall:
        raise UsageError("Give either --install or --uninstall.")
    if install or uninstall:
        change = install_check if install else remove_check
        return hook_result(session.run(change(Path.cwd(), HOOK_CHECK)))
    place = place_of(None)
    session.run(require_clean(place))
    return Result(
        document={"root": str(place.root), "is_clean": True},
        show=lambda writer: writer.line(f"{place.root} holds neither a deployment.json in git nor tfvars."),
    )
