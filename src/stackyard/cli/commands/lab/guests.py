"""`stackyard lab guests`: where the guests of a lab can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["guests"]


@click.command("guests", cls=Command)
@name_option
@click.option("--all", "is_all", is_flag=True, help="Include guests that do not run.")
def guests(name: str, is_all: bool) -> Result:
    """List the guests that you can log in to, and how to reach them.

    Each running guest with an address accepts SSH on a port of this machine (host, port), and at its own
    address through any node of the lab as a jump host. Users, keys and passwords come from its cloud-init.
    With --json, the output includes its host key in the format of known_hosts.

    \b
    stackyard lab guests
    stackyard lab guests --json | jq -r '.guests[] | "\\(.name) \\(.host):\\(.port)"'
    stackyard lab ssh web1                                log in to one of them
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/guests")
    if not is_all:
        document["guests"] = [one for one in document["guests"] if one["addresses"]]
    return Result(document=document, show=lambda writer: _show(writer, document))


def _show(writer: TextWriter, document: dict[str, Any]) -> None:
    if not document["guests"]:
        writer.line("No guest runs that has an address.")
        return
    writer.line(f"Inside guests: {document['kind']}.")
    for one in document["guests"]:
        where = f"{one['host']}:{one['port']}" if one["port"] else one["status"]
        reached = ", ".join(one["addresses"]) or "no address"
        users = ", ".join(one["users"][:4]) or "nobody"
        writer.line(
            f"  {one['vmid']:<6} {one['name']:<24} {one['node']:<10} {reached:<18} {where:<22} {users}"
        )
