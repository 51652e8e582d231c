"""`stackyard deployment rollback`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, read_acknowledgements, write_options
from stackyard.cli.commands.deployment.view import make_write_result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["rollback"]


@click.command("rollback", cls=Command)
@click.argument("version")
@write_options
@pass_session
def rollback(session: Session, /, version: str, store: str | None, **values: Any) -> Result:
    """Restore an earlier VERSION as a new version.

    Nothing is lost: the replaced version stays. As with every write, use --allow-delete to name the guests
    that the earlier version does not have. `stackyard plan deployment` then shows the effect.
    """
    from stackyard.sources.deployment.fetch import open_history  # lazy: only when this verb runs
    from stackyard.sources.deployment.store import choose_version  # lazy: as above
    from stackyard.sources.deployment.write import WriteRequest, write  # lazy: as above

    place = place_of(store)
    with contextlib.closing(open_history(place)) as opened:
        chosen = choose_version(opened, version)
        data = opened.read_version(chosen).data
    given = read_acknowledgements(values)
    given["note"] = given["note"] or f"rollback to {chosen.id}"
    request = WriteRequest(kind="rollback", make=lambda current: data, mends=True, **given)
    return make_write_result(write(place, request, emit=session.emit), place.label)
