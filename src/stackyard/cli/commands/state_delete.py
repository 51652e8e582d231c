"""`stackyard state delete` and `restore`: a state that is no longer served, and back."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options

__all__ = ["delete", "restore"]


@click.command("delete", cls=Command)
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is audited.")
@store_options
def delete(name: str, reason: str, choice: StoreChoice) -> Result:
    """Delete a state.

    What it describes goes on existing. Runs are told that the state was deleted, never that it is empty,
    which would make them build everything anew. All its versions stay: `state restore NAME` undoes it. A
    state that is locked or frozen is not deleted.
    """
    with open_service(choice) as service:
        service.delete(name, current_actor(), reason=reason)
    text = f"{name} is deleted; `stackyard state restore {name}` undoes it."
    return Result(document={"name": name, "reason": reason}, show=lambda paper: paper.line(text))


@click.command("restore", cls=Command)
@click.argument("name")
@store_options
def restore(name: str, choice: StoreChoice) -> Result:
    """Undo a deletion. It is no error if the state is not deleted."""
    with open_service(choice) as service:
        was_deleted = service.head(name).tombstone is not None
        service.restore(name, current_actor())
        serial = service.head(name).serial
    text = f"{name} is back, with serial {serial}." if was_deleted else f"{name} was not deleted."
    return Result(
        document={"name": name, "was_deleted": was_deleted, "serial": serial},
        show=lambda paper: paper.line(text),
    )
