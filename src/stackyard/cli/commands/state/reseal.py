"""`stackyard state reseal`: everything in a store under its newest key."""

from __future__ import annotations

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import (
    KEY_VARIABLE,
    StoreChoice,
    current_actor,
    open_service,
    store_options,
)
from stackyard.cli.result import Result

__all__ = ["reseal"]


@click.command("reseal", cls=Command)
@store_options
def reseal(choice: StoreChoice) -> Result:
    """Re-encrypt everything in a store with the first of its keys, while it is in use.

    Put the new key above the old one, give both to every user of the store, then run reseal. After that you
    can remove the old key. A running service that gets a new key does this by itself.

    \b
    stackyard state reseal --data states --key-file state.key
    """  # noqa: D301 - click reads the control character
    from stackyard.clients.objects.sealed import SealedObjects  # lazy: cryptography costs 50 ms
    from stackyard.clients.objects.sealed import reseal as reseal_all  # lazy: as above
    from stackyard.state import AuditAction  # lazy: only when this verb runs

    with open_service(choice) as service:
        if not isinstance(service.objects, SealedObjects):
            raise UsageError(f"No key was given: use --key-file or {KEY_VARIABLE}.")
        count = reseal_all(service.objects)
        if count:
            service.audit.note(current_actor(), AuditAction.RESEALED, detail=f"{count} objects.")
    text = f"{count} objects had another key." if count else "Everything has the first key already."
    return Result(document={"resealed": count}, show=lambda writer: writer.line(text))
