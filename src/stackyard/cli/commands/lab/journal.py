"""`stackyard lab journal`: the calls that clients of a lab made."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["journal"]


@click.command("journal", cls=Command)
@name_option
@click.option("--method", metavar="M", help="Only this method: GET, POST, PUT, DELETE, SSH or SFTP.")
@click.option("--path", metavar="PATTERN", help="Only paths (or commands) that match: '/nodes/*/qemu/*'.")
@click.option("--status", metavar="N", help="Only responses with this status; 5xx matches the whole class.")
@click.option("--user", metavar="PATTERN", help="Only requests of these users or tokens.")
@click.option("--parameter", metavar="KEY[=VALUE]", help="Only requests with this parameter.")
@click.option("--after", type=click.IntRange(0), metavar="N", help="Only requests after this number.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the last N requests.")
@click.option("--clear", "is_clear", is_flag=True, help="Clear the journal instead of showing it.")
def journal(name: str, is_clear: bool, **filters: Any) -> Result:
    """Show the requests that clients sent, oldest first. Secrets are masked.

    \b
    stackyard lab journal --method POST --path '/nodes/*/qemu*'
    stackyard lab journal --status 5xx --limit 10
    stackyard lab journal --json | jq '.calls[].path'
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    client = lab_client(name)
    if is_clear:
        document = client.call("DELETE", "/journal")
        return Result(document=document, show=lambda writer: writer.line("The journal is empty."))
    document = client.call("GET", "/journal", **filters)
    return Result(document=document, show=lambda writer: _show(writer, document["calls"]))


def _show(writer: TextWriter, calls: list[dict[str, Any]]) -> None:
    if not calls:
        writer.line("No calls.")
        return
    rows = []
    for call in calls:
        at = datetime.datetime.fromtimestamp(call["time"], datetime.UTC).strftime("%H:%M:%S")
        told = " ".join(f"{key}={value}" for key, value in call["parameters"].items())
        answer = str(call["status"]) if call["status"] in (0, 200) else f"{call['status']} {call['reason']}"
        rows.append((str(call["number"]), at, call["method"], call["path"], answer, told))
    writer.table(("call", "time", "method", "path", "answer", "parameters"), rows)
