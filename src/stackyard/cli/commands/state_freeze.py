"""`stackyard state freeze` and `unfreeze`: nobody may change a state for a while."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options

__all__ = ["freeze", "unfreeze"]


@click.command("freeze", cls=Command)
@click.argument("name")
@click.option("--reason", required=True, metavar="TEXT", help="Why; everybody who is kept out is told.")
@store_options
def freeze(name: str, reason: str, choice: StoreChoice) -> Result:
    """Keep everybody from locking and writing a state.

    Whoever holds the lock now may finish. Reading goes on. `state unfreeze NAME` undoes it.
    """
    with open_service(choice) as service:
        service.locks.freeze(name, current_actor(), reason=reason)
        head = service.head(name)
    holder = None if head.lock is None else head.lock.info.who or head.lock.principal
    text = f"{name} is frozen: {reason}"
    return Result(
        document={"name": name, "reason": reason, "holder": holder},
        show=lambda paper: paper.line(f"{text} ({holder} may finish)" if holder else text),
    )


@click.command("unfreeze", cls=Command)
@click.argument("name")
@store_options
def unfreeze(name: str, choice: StoreChoice) -> Result:
    """Let runs lock and write a state again. It is no error if it is not frozen."""
    with open_service(choice) as service:
        was_frozen = service.head(name).freeze is not None
        service.locks.thaw(name, current_actor())
    text = f"{name} is no longer frozen." if was_frozen else f"{name} was not frozen."
    return Result(document={"name": name, "was_frozen": was_frozen}, show=lambda paper: paper.line(text))
