"""`stackyard state register`: names that a service serves before anything is written under them."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options

__all__ = ["register"]


@click.command("register", cls=Command)
@click.argument("name")
@store_options
def register(name: str, choice: StoreChoice) -> Result:
    """Make a state known before its first write.

    A service that takes registered names only answers a mistyped name with an error, not with an empty state
    that makes the engine build everything anew. A state that is known is left as it is.
    """
    with open_service(choice, create=True) as service:
        service.register(name, current_actor())
    return Result(document={"name": name}, show=lambda paper: paper.line(f"{name} is registered."))
