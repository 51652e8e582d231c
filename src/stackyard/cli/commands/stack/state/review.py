"""`stackyard stack state list|show|approve|discard`: what is proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["approve", "discard", "list_changes", "show"]


@click.command("list", cls=Command)
@pass_session
def list_changes(session: Session) -> Result:
    """List the changes: proposed, approved or applied."""
    from stackyard.cli.runs.stacks.state_change import run_state_list  # lazy: the help needs none of it

    return run_state_list(session)


@click.command("show", cls=Command)
@click.argument("change")
@pass_session
def show(session: Session, change: str) -> Result:
    """Show a change: what moves, and the plan after it.

    CHANGE is an ID, the start of one, or a file.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_show  # lazy: the help needs none of it

    return run_state_show(session, change)


@click.command("approve", cls=Command)
@click.argument("change")
@click.option("--alone", "is_alone", is_flag=True, help="Approve your own change; the record says so.")
@pass_session
def approve(session: Session, change: str, is_alone: bool) -> Result:
    """Approve a change that somebody else proposed.

    CHANGE is an ID, the start of one, or the file that --out wrote, unchanged. The approval is for this
    change and this version of the state: it is void once the state is another one. The same user name counts
    as the same person on every machine. For a protected stack, --alone is refused.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_approve  # lazy: the help needs none of it

    return run_state_approve(session, change, is_alone=is_alone)


@click.command("discard", cls=Command)
@click.argument("changes", nargs=-1, required=True)
@pass_session
def discard(session: Session, changes: tuple[str, ...]) -> Result:
    """Remove changes from the store.

    Each of CHANGES is an ID, or the start of one. If an applied change kept the former state of another
    backend, that state is removed too.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_discard  # lazy: the help needs none of it

    return run_state_discard(session, changes)
