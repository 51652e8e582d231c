"""`stackyard output`: what a target's guests are called and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import target_options
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["output"]


@click.command("output", cls=Command)
@target_options
@pass_session
def output(session: Session, /, **values: Any) -> Result:
    """Show the guests of TARGET from its state: IDs, names, nodes, addresses."""
    with pause_garbage_collection():
        from stackyard.cli.runs.output import run_output  # lazy: the help needs none of it

    return session.run(run_output(session, values))
