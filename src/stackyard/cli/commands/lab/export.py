"""`stackyard lab export`: a seed written from a lab or from a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.copy_source import CopyRequest

__all__ = ["export"]


@click.command("export", cls=Command)
@name_option
@click.option("--url", metavar="URL", help="Read this cluster, https://HOST:8006, instead of a lab.")
@click.option(
    "--token",
    metavar="USER@REALM!NAME=SECRET",
    envvar="PROXMOX_VE_API_TOKEN",
    show_envvar=True,
    help="An API token of the cluster; PVEAuditor on / is enough.",
)
@click.option("--fingerprint", metavar="AB:CD:...", help="The SHA-256 of the certificate to trust.")
@click.option("--insecure", is_flag=True, help="Trust any certificate.")
@click.option(
    "--to", metavar="FILE", help="Write to this file, readable only by you, instead of standard output."
)
@pass_session
def export(session: Session, /, name: str, to: str | None, **options: Any) -> Result:
    """Write a seed from a running lab or from a real cluster.

    It only reads (GET requests). The seed contains nodes, storages, guests with their snapshots, pools,
    users, permissions, firewalls, virtual networks and jobs. It contains no content of disks and no secrets.
    A comment at the top lists what could not be read, or cannot be recreated in a lab.

    \b
    stackyard lab export > seed.yaml                      the running lab
    export PROXMOX_VE_API_TOKEN='copy@pve!lab=...'
    stackyard lab export --url https://pve1:8006 > seed.yaml     a real cluster
    stackyard lab up --seed seed.yaml                     a lab that copies the cluster
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.lab.copy_source import (  # lazy: the lab, for this verb only
        CopyRequest,
        read_copy,
    )

    copy = session.run(read_copy(_read_request(CopyRequest, name, options)))
    for what, reason in copy.left_out.items():
        text = f"left out: {what}: {reason}"
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="lab", text=text))
    if to is not None:
        from stackyard.base import files  # lazy: with what it imports, for this option only

        files.replace_file(Path(to), copy.text.encode())
        return Result(
            document={"file": to, "guests": copy.guests, "left_out": dict(copy.left_out)},
            show=lambda writer: writer.line(f"Wrote {to}: {copy.guests} guests."),
        )
    return Result(
        document={"seed": copy.document, "left_out": dict(copy.left_out)},
        show=lambda writer: writer.text(copy.text),
    )


def _read_request(kind: type[CopyRequest], name: str, options: dict[str, Any]) -> CopyRequest:
    if options["url"] is None:
        given = [option for option in ("fingerprint", "insecure") if options[option]]
        if given:
            raise UsageError(f"--{given[0]} is for a cluster that --url names.")
        return kind(name=name)
    if not options["token"]:
        raise UsageError("A real cluster is read with an API token: give --token or PROXMOX_VE_API_TOKEN.")
    return kind(name=name, **options)
