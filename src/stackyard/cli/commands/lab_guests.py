"""`stackyard lab guests`: where the guests of a lab can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.labs.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper

__all__ = ["guests"]


@click.command("guests", cls=Command)
@name_option
@click.option("--all", "is_all", is_flag=True, help="Those that do not run, too.")
def guests(name: str, is_all: bool) -> Result:
    """List the guests that one can log in to, and how to reach them.

    Each guest that runs and has an address answers SSH on a port of this machine (host, port), and at its own
    address through any node of the lab as a jump host. Users, keys and passwords are those of its cloud-init.
    With --json its host key is there too, as known_hosts wants it.

    \b
    stackyard lab guests
    stackyard lab guests --json | jq -r '.guests[] | "\\(.name) \\(.host):\\(.port)"'
    stackyard lab ssh web1                                log in to one of them
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/guests")
    if not is_all:
        document["guests"] = [one for one in document["guests"] if one["addresses"]]
    return Result(document=document, show=lambda paper: _show(paper, document))


def _show(paper: Paper, document: dict[str, Any]) -> None:
    if not document["guests"]:
        paper.line("No guest runs that has an address.")
        return
    paper.line(f"Inside guests: {document['kind']}.")
    for one in document["guests"]:
        where = f"{one['host']}:{one['port']}" if one["port"] else one["status"]
        reached = ", ".join(one["addresses"]) or "no address"
        users = ", ".join(one["users"][:4]) or "nobody"
        paper.line(
            f"  {one['vmid']:<6} {one['name']:<24} {one['node']:<10} {reached:<18} {where:<22} {users}"
        )
