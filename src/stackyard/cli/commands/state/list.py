"""`stackyard state list`: the states of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.words import instant, local_time, size
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import StateHead

__all__ = ["list_states"]


@click.command("list", cls=Command)
@click.argument("prefix", required=False, default="", shell_complete=complete_states)
@click.option("--deleted", is_flag=True, help="Show deleted states too.")
@store_options
def list_states(prefix: str, deleted: bool, choice: StoreChoice) -> Result:
    """Show the states of a store, or those at or below PREFIX.

    \b
    stackyard state list
    stackyard state list env/dev --json
    stackyard state list --store s3://states/home
    """  # noqa: D301 - click reads the control character
    with open_service(choice) as service:
        found = [head for head in service.heads(prefix) if deleted or head.tombstone is None]
    return Result(
        document={"store": choice.describe(), "states": [_document(head) for head in found]},
        show=lambda writer: _show(writer, found, choice),
    )


def _document(head: StateHead) -> dict[str, Any]:
    current = head.current
    return {
        "name": head.name,
        "serial": head.serial,
        "lineage": head.lineage,
        "version": None if current is None else current.number,
        "size": None if current is None else current.size,
        "resources": None if current is None or current.is_encrypted else current.resources,
        "instances": None if current is None or current.is_encrypted else current.instances,
        "is_encrypted": current is not None and current.is_encrypted,
        "written_at": instant(None if current is None else current.at),
        "lock_id": None if head.lock is None else head.lock.info.id,
        "frozen": None if head.freeze is None else head.freeze.reason,
        "deleted": None if head.tombstone is None else head.tombstone.reason,
    }


def _show(writer: TextWriter, found: list[StateHead], choice: StoreChoice) -> None:
    if not found:
        writer.line(f"No states in {choice.describe()}.")
        return
    rows = []
    for head in found:
        current = head.current
        numbers = ("-", "-", "-", "-")
        if current is not None:
            counted = "encrypted" if current.is_encrypted else str(current.instances)
            numbers = (str(current.serial), str(current.number), counted, size(current.size))
        rows.append((head.name, *numbers, local_time(None if current is None else current.at), _status(head)))
    writer.table(("state", "serial", "version", "instances", "size", "written", "status"), rows)


def _status(head: StateHead) -> str:
    if head.tombstone is not None:
        return "deleted"
    if head.lock is not None:
        return f"locked by {head.lock.info.who or head.lock.principal}"
    if head.freeze is not None:
        return "frozen"
    return "-" if head.current is not None else "empty"
