"""`stackyard output`: what a target's guests are called and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import target_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import names_stacks

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["output"]


@click.command("output", cls=Command)
@target_options
@click.option("--raw", metavar="NAME", help="Print this output of a stack as it is, also a sensitive one.")
@pass_session
def output(session: Session, /, **values: Any) -> Result:
    """Show the guests of TARGET from its state: IDs, names, nodes, addresses. Of a stack, show its outputs.

    \b
    stackyard output dev
    stackyard output stack:network --raw gateway
    """  # noqa: D301 - click reads the control character
    if names_stacks(values):
        with pause_garbage_collection():
            from stackyard.cli.runs.stacks.state import run_stack_output  # lazy: the help needs none of it

        return session.run(run_stack_output(session, values))
    if values["raw"]:
        raise UsageError("--raw prints an output of a stack: `stack:NAME`.")
    with pause_garbage_collection():
        from stackyard.cli.runs.output import run_output  # lazy: the help needs none of it

    return session.run(run_output(session, values))
