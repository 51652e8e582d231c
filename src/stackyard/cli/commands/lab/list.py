"""`stackyard lab list`: the labs of this user that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.instances import LabRecord
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["list_labs"]


@click.command("list", cls=Command)
def list_labs() -> Result:
    """List the running labs. `stackyard lab status --name NAME` shows how to log in to one."""
    from stackyard.cli.commands.lab.instances import (  # lazy: asyncio, only when this verb runs
        Instance,
        list_running_names,
    )

    records = [record for name in list_running_names() if (record := Instance(name).read()) is not None]
    rows = [_row(record) for record in records]
    return Result(document={"labs": rows}, show=lambda writer: _show(writer, rows))


def _row(record: LabRecord) -> dict[str, Any]:
    """Return what tells one lab from another; the password and the token are not among it."""
    return {
        "name": record.name,
        "url": record.ready["url"],
        "nodes": list(record.ready["nodes"]),
        "pid": record.pid,
        "data": record.options.get("data"),
    }


def _show(writer: TextWriter, rows: list[dict[str, Any]]) -> None:
    if not rows:
        writer.line("No lab is running; start one with `stackyard lab up`.")
        return
    table = [
        (row["name"], row["url"], ", ".join(row["nodes"]), str(row["pid"]), row["data"] or "in memory")
        for row in rows
    ]
    writer.table(("lab", "address", "nodes", "pid", "data"), table)
