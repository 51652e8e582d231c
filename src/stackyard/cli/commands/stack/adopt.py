"""`stackyard stack adopt`: the state of a stack, into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["adopt"]


@click.command("adopt", cls=Command)
@click.argument("target", metavar="STACK")
@reach_options
@pass_session
def adopt(session: Session, /, **values: Any) -> Result:
    """Move the state of a stack into the store of stackyard, and make its code use it.

    \b
    stackyard stack adopt onprem/server_a

    The state is copied first. Then the backend block of the code becomes `backend "http" {}`, which means the
    store of stackyard. A local state file is renamed, so that OpenTofu does not use it; a state in a
    bucket stays where it is. A command that was stopped can be repeated. Commit the changed file.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.stacks.adoption import run_adopt  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_adopt(session, values))
