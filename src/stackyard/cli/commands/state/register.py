"""`stackyard state register`: names that a service serves before anything is written under them."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.result import Result

__all__ = ["register"]


@click.command("register", cls=Command)
@click.argument("name")
@store_options
def register(name: str, choice: StoreChoice) -> Result:
    """Register a state before its first write.

    A service that accepts only registered names answers a mistyped name with an error. An unregistered name
    would otherwise give an empty state, and the engine would create everything again. A state that is already
    known does not change.
    """
    with open_service(choice, create=True) as service:
        service.register(name, current_actor())
    return Result(document={"name": name}, show=lambda writer: writer.line(f"{name} is registered."))
