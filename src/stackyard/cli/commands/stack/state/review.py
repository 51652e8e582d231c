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
    """List the proposed changes of states: `proposed`, `approved` or `applied`."""
    from stackyard.cli.runs.stacks.state_change import run_state_list  # lazy: the help needs none of it

    return run_state_list(session)


@click.command("show", cls=Command)
@click.argument("change")
@pass_session
def show(session: Session, change: str) -> Result:
    """Show a proposed change: what moves, the version of the state, and the plan after it.

    CHANGE is an id, the start of one, or a file.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_show  # lazy: the help needs none of it

    return run_state_show(session, change)


@click.command("approve", cls=Command)
@click.argument("change")
@click.option("--alone", "is_alone", is_flag=True, help="Approve your own proposal; the record says so.")
@pass_session
def approve(session: Session, change: str, is_alone: bool) -> Result:
    """Approve a change that somebody else proposed.

    CHANGE is an id, the start of one, or the file as it was proposed. The approval is for exactly this
    document and this version of the state: once the state changes, it is worth nothing. A user of the same
    name counts as the same person on every machine. The changes of a protected stack need a second person
    always.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_approve  # lazy: the help needs none of it

    return run_state_approve(session, change, is_alone=is_alone)


@click.command("discard", cls=Command)
@click.argument("changes", nargs=-1, required=True)
@pass_session
def discard(session: Session, changes: tuple[str, ...]) -> Result:
    """Remove proposed changes from the store.

    Each of CHANGES is an id, or the start of one. For an applied change of a state outside of the store, the
    former state that was kept goes too.
    """
    from stackyard.cli.runs.stacks.state_change import run_state_discard  # lazy: the help needs none of it

    return run_state_discard(session, changes)
