"""`stackyard lab snapshot`: a whole lab, saved and restored."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import group
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["snapshot"]


@group("snapshot")
def snapshot() -> None:
    """Save and restore the whole lab: guests, files, users, tasks, faults.

    A lab with --data keeps its snapshots there. A lab in memory loses them when it stops.

    \b
    stackyard lab snapshot save before
    stackyard lab snapshot restore before
    """  # noqa: D301 - click reads the control character


@snapshot.command("save")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def save(snapshot_name: str, name: str) -> Result:
    """Save the lab as a snapshot, and replace one of the same name."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("POST", f"/snapshots/{snapshot_name}")
    return Result(document=document, show=lambda writer: writer.line(f"Saved '{snapshot_name}'."))


@snapshot.command("restore")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def restore(snapshot_name: str, name: str) -> Result:
    """Restore the lab from a snapshot. This interrupts running tasks."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("POST", f"/snapshots/{snapshot_name}/restore")
    return Result(document=document, show=lambda writer: writer.line(f"Restored '{snapshot_name}'."))


@snapshot.command("list")
@name_option
def list_snapshots(name: str) -> Result:
    """Show all snapshots."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/snapshots")
    return Result(document=document, show=lambda writer: _show(writer, document["snapshots"]))


@snapshot.command("delete")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def delete(snapshot_name: str, name: str) -> Result:
    """Delete a snapshot."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("DELETE", f"/snapshots/{snapshot_name}")
    return Result(document=document, show=lambda writer: writer.line(f"Deleted '{snapshot_name}'."))


def _show(writer: TextWriter, found: list[dict[str, Any]]) -> None:
    if not found:
        writer.line("No snapshots.")
        return
    rows = []
    for saved in found:
        at = datetime.datetime.fromtimestamp(saved["time"], datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        rows.append((saved["name"], at, str(saved["guests"]), str(saved["bytes"])))
    writer.table(("snapshot", "saved", "guests", "bytes"), rows)
