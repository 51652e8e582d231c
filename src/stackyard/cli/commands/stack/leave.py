"""`stackyard stack leave`: the state of a stack, out of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["leave"]


@click.command("leave", cls=Command)
@click.argument("target", metavar="STACK")
@reach_options
@pass_session
def leave(session: Session, /, **values: Any) -> Result:
    """Move the state of a stack out of the store, to a file beside its code.

    \b
    stackyard stack leave onprem/server_a

    The state is written to `terraform.tfstate` in the folder of the stack, and the backend block is removed
    from its code. From there, `tofu init -migrate-state` moves it to any other backend. The versions in the
    store stay. Commit the changed file.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.stacks.adoption import run_leave  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_leave(session, values))
