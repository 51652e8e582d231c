"""`stackyard lab export`: a seed written from a lab or from a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard import events
from stackyard.cli.command import Command
from stackyard.cli.labs.view import name_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import UsageError

if TYPE_CHECKING:
    from stackyard.cli.labs.export import Wanted

__all__ = ["export"]


@click.command("export", cls=Command)
@name_option
@click.option("--url", metavar="URL", help="Read this cluster, https://HOST:8006, in place of a lab.")
@click.option(
    "--token",
    metavar="USER@REALM!NAME=SECRET",
    envvar="PROXMOX_VE_API_TOKEN",
    show_envvar=True,
    help="An API token for it; PVEAuditor on / is enough.",
)
@click.option("--fingerprint", metavar="AB:CD:...", help="The SHA-256 of the certificate to trust.")
@click.option("--insecure", is_flag=True, help="Trust any certificate.")
@click.option("--to", metavar="FILE", help="Write this file, for you alone, in place of standard output.")
@pass_session
def export(session: Session, /, name: str, to: str | None, **options: Any) -> Result:
    """Write a seed from a lab that runs, or from a real cluster.

    It only reads (GET calls). Nodes, storages, guests with their snapshots, pools, users, permissions,
    firewalls, virtual networks and jobs are in it; the content of disks and every secret is not. What could
    not be read, or cannot be made again in a lab, is listed in a comment at its top.

    \b
    stackyard lab export > seed.yaml                      the lab that runs
    export PROXMOX_VE_API_TOKEN='copy@pve!lab=...'
    stackyard lab export --url https://pve1:8006 > seed.yaml     a real cluster
    stackyard lab up --seed seed.yaml                     a lab that is a copy of it
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.labs.export import Wanted, read_copy  # lazy: the lab, for this verb only

    copy = session.run(read_copy(_wanted(Wanted, name, options)))
    for what, reason in copy.left_out.items():
        text = f"left out: {what}: {reason}"
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="lab", text=text))
    if to is not None:
        from stackyard import files  # lazy: with what it imports, for this option only

        files.replace_file(Path(to), copy.text.encode())
        return Result(
            document={"file": to, "guests": copy.guests, "left_out": dict(copy.left_out)},
            show=lambda paper: paper.line(f"Wrote {to}: {copy.guests} guests."),
        )
    return Result(
        document={"seed": copy.document, "left_out": dict(copy.left_out)},
        show=lambda paper: paper.text(copy.text),
    )


def _wanted(kind: type[Wanted], name: str, options: dict[str, Any]) -> Wanted:
    if options["url"] is None:
        given = [option for option in ("fingerprint", "insecure") if options[option]]
        if given:
            raise UsageError(f"--{given[0]} is for a cluster that --url names.")
        return kind(name=name)
    if not options["token"]:
        raise UsageError("A real cluster is read with an API token: give --token or PROXMOX_VE_API_TOKEN.")
    return kind(name=name, **options)
