"""`stackyard stack state apply`: a change that was approved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["apply"]


@click.command("apply", cls=Command)
@click.argument("change")
@reach_options
@pass_session
def apply(session: Session, /, **values: Any) -> Result:
    """Make a change that was approved, under the lock of the stack.

    CHANGE is an ID, the start of one, or a file that is on the default branch unchanged. The state must still
    be the version that the change was proposed for. The former state is kept, and the output has the command
    that goes back to it. Then the stack is planned again. If that plan is not the one that was reviewed, the
    exit status is 1, and the change stays made. A command that was stopped can be repeated.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_apply  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_state_apply(session, values))
