"""`stackyard state reseal`: everything in a store under its newest key."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import KEY_VARIABLE, StoreChoice, current_actor, open_service, store_options
from stackyard.errors import UsageError

__all__ = ["reseal"]


@click.command("reseal", cls=Command)
@store_options
def reseal(choice: StoreChoice) -> Result:
    """Encrypt everything in a store with the first of its keys, while it is in use.

    Put a new key on top of the old one, give both to everybody who uses the store, then reseal; afterwards
    the old key can go. A daemon that is given a new key does it by itself.

    \b
    stackyard state reseal --data states --key-file state.key
    """  # noqa: D301 - click reads the control character
    from stackyard.objects.sealed import SealedObjects  # lazy: cryptography costs 50 ms
    from stackyard.objects.sealed import reseal as reseal_all  # lazy: as above
    from stackyard.state import Action  # lazy: only when this verb runs

    with open_service(choice) as service:
        if not isinstance(service.objects, SealedObjects):
            raise UsageError(f"No key was given: use --key-file or {KEY_VARIABLE}.")
        count = reseal_all(service.objects)
        if count:
            service.audit.note(current_actor(), Action.RESEALED, detail=f"{count} objects.")
    text = f"{count} objects had another key." if count else "Everything has the first key already."
    return Result(document={"resealed": count}, show=lambda paper: paper.line(text))
