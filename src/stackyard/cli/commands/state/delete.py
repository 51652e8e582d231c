"""`stackyard state delete` and `restore`: a state that is no longer served, and back."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

__all__ = ["delete", "restore"]


@click.command("delete", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option("--reason", required=True, metavar="TEXT", help="The reason, for the audit log.")
@store_options
def delete(name: str, reason: str, choice: StoreChoice) -> Result:
    """Delete a state.

    The resources in it continue to exist. Runs get an error that the state was deleted. They never get an
    empty state, which would make them create everything again. All versions stay: `state restore NAME` undoes
    the deletion. You cannot delete a locked or frozen state.
    """
    with open_service(choice) as service:
        service.delete(name, current_actor(), reason=reason)
    text = f"{name} is deleted; `stackyard state restore {name}` undoes it."
    return Result(document={"name": name, "reason": reason}, show=lambda writer: writer.line(text))


@click.command("restore", cls=Command)
@click.argument("name", shell_complete=complete_states)
@store_options
def restore(name: str, choice: StoreChoice) -> Result:
    """Restore a deleted state. If it is not deleted, that is not an error."""
    with open_service(choice) as service:
        was_deleted = service.head(name).tombstone is not None
        service.restore(name, current_actor())
        serial = service.head(name).serial
    text = f"{name} is back, with serial {serial}." if was_deleted else f"{name} was not deleted."
    return Result(
        document={"name": name, "was_deleted": was_deleted, "serial": serial},
        show=lambda writer: writer.line(text),
    )
