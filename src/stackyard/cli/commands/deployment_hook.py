"""`stackyard deployment hook`."""

from __future__ import annotations

from pathlib import Path

import click

from stackyard.cli.command import Command
from stackyard.cli.deployments.options import place_of
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

__all__ = ["hook"]


@click.command("hook", cls=Command)
@click.option("--install", is_flag=True, help="Have git do this before each commit.")
@pass_session
def hook(session: Session, /, install: bool) -> Result:
    """Refuse a working tree with a deployment.json in git or a terraform.tfvars in it.

    The same is refused by `stackyard plan deployment` and `apply`. As a hook it keeps the file out of the
    first commit; a pre-commit hook that is there is kept and runs first.
    """
    from stackyard.deployment.worktree import install_hook, require_clean  # lazy: only when this verb runs

    if install:
        installed = session.run(install_hook(Path.cwd()))
        kept = (
            "" if installed.kept is None else f" The one that was there is {installed.kept}, and runs first."
        )
        return Result(
            document={
                "hook": str(installed.path),
                "kept": None if installed.kept is None else str(installed.kept),
            },
            show=lambda paper: paper.line(f"Installed {installed.path}.{kept}"),
        )
    place = place_of(None)
    session.run(require_clean(place))
    return Result(
        document={"root": str(place.root), "is_clean": True},
        show=lambda paper: paper.line(f"{place.root} holds neither a deployment.json in git nor tfvars."),
    )
