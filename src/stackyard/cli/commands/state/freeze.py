"""`stackyard state freeze` and `unfreeze`: no one may change a state for a while."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

__all__ = ["freeze", "unfreeze"]


@click.command("freeze", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option("--reason", required=True, metavar="TEXT", help="The reason; every refused run shows it.")
@store_options
def freeze(name: str, reason: str, choice: StoreChoice) -> Result:
    """Block all locks and writes of a state.

    The current holder of the lock may finish. Reads still work. `state unfreeze NAME` undoes it.
    """
    with open_service(choice) as service:
        service.locks.freeze(name, current_actor(), reason=reason)
        head = service.head(name)
    holder = None if head.lock is None else head.lock.info.who or head.lock.principal
    text = f"{name} is frozen: {reason}"
    return Result(
        document={"name": name, "reason": reason, "holder": holder},
        show=lambda writer: writer.line(f"{text} ({holder} may finish)" if holder else text),
    )


@click.command("unfreeze", cls=Command)
@click.argument("name", shell_complete=complete_states)
@store_options
def unfreeze(name: str, choice: StoreChoice) -> Result:
    """Allow locks and writes of a state again. If it is not frozen, that is not an error."""
    with open_service(choice) as service:
        was_frozen = service.head(name).freeze is not None
        service.locks.thaw(name, current_actor())
    text = f"{name} is no longer frozen." if was_frozen else f"{name} was not frozen."
    return Result(document={"name": name, "was_frozen": was_frozen}, show=lambda writer: writer.line(text))
