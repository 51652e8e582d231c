"""`stackyard lab snapshot`: a whole lab, saved and restored."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import group
from stackyard.cli.labs.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper

__all__ = ["snapshot"]


@group("snapshot")
def snapshot() -> None:
    """Save and restore the whole lab: guests, files, users, tasks, faults.

    Snapshots of a lab with --data are kept there; those of a lab in memory go with it.

    \b
    stackyard lab snapshot save before
    stackyard lab snapshot restore before
    """  # noqa: D301 - click reads the control character


@snapshot.command("save")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def save(snapshot_name: str, name: str) -> Result:
    """Save the lab as it is now, in place of a snapshot of the same name."""
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("POST", f"/snapshots/{snapshot_name}")
    return Result(document=document, show=lambda paper: paper.line(f"Saved '{snapshot_name}'."))


@snapshot.command("restore")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def restore(snapshot_name: str, name: str) -> Result:
    """Make the lab what it was when it was saved; tasks that run are interrupted."""
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("POST", f"/snapshots/{snapshot_name}/restore")
    return Result(document=document, show=lambda paper: paper.line(f"Restored '{snapshot_name}'."))


@snapshot.command("list")
@name_option
def list_snapshots(name: str) -> Result:
    """Show the snapshots that there are."""
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/snapshots")
    return Result(document=document, show=lambda paper: _show(paper, document["snapshots"]))


@snapshot.command("delete")
@click.argument("snapshot_name", metavar="SNAPSHOT")
@name_option
def delete(snapshot_name: str, name: str) -> Result:
    """Forget a snapshot."""
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("DELETE", f"/snapshots/{snapshot_name}")
    return Result(document=document, show=lambda paper: paper.line(f"Deleted '{snapshot_name}'."))


def _show(paper: Paper, found: list[dict[str, Any]]) -> None:
    if not found:
        paper.line("No snapshots.")
        return
    rows = []
    for saved in found:
        at = datetime.datetime.fromtimestamp(saved["time"], datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")
        rows.append((saved["name"], at, str(saved["guests"]), str(saved["bytes"])))
    paper.table(("snapshot", "saved", "guests", "bytes"), rows)
