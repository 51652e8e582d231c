"""`stackyard lab ssh`: a login to a guest or a node of a lab, with the real ssh."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UnreachableError
from stackyard.cli.command import Command
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result
from stackyard.cli.settings import read_settings

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.client import LabClient
    from stackyard.cli.commands.lab.instances import Instance

__all__ = ["ssh"]


class GuestUnreachableError(UnreachableError):
    """A guest or a node cannot be logged in to: it does not run, has no address, or no one is let in."""

    code = "E-LAB-GUEST-UNREACHABLE"
    summary = "A guest or a node of the lab cannot be reached"
    default_remedy = "`stackyard lab guests --all` shows the status, addresses and users of guests."


@click.command("ssh", cls=Command, context_settings={"ignore_unknown_options": False})
@name_option
@click.option(
    "--user",
    metavar="USER",
    help="Log in as this user (default: the first user of its cloud-init, or root if it has none).",
)
@click.option(
    "-i",
    "--identity",
    metavar="FILE",
    help="The private key to log in with (default: the one that the lab created for you).",
)
@click.argument("guest")
@click.argument("command", nargs=-1)
def ssh(name: str, guest: str, command: tuple[str, ...], **options: Any) -> Result:
    """Log in to a guest or a node, or run a command there.

    Name the guest by its name or VM ID, or name a node, where you are root and find the commands of Proxmox.
    The command runs the real ssh, with the port, the user and the host key of the guest; everything after --
    is the command to run in the guest. You log in with a key that the lab creates for you, whatever users and
    keys the guest has. With --json, the command prints the command line of ssh and runs nothing.

    \b
    stackyard lab ssh web1
    stackyard lab ssh pve1 -- qm list
    stackyard lab ssh web1 -i ~/.ssh/lab -- cat /var/log/cloud-init.log
    stackyard lab ssh 100 --user root
    """  # noqa: D301 - click reads the control character
    from pvelab.runtime.owner_key import read_or_create_owner_key  # lazy: cryptography, as above
    from stackyard.base import process  # lazy: asyncio, only when this verb runs
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, as above
    from stackyard.cli.commands.lab.instances import Instance  # lazy: as above

    client, instance = lab_client(name), Instance(name)
    kind, found = _find(client, guest)
    if options["identity"] is None and found["takes_owner_key"]:
        key = read_or_create_owner_key(instance.folder)
        client.call("POST", "/owner-keys", key=key.public)
        options["identity"] = str(key.path)
    argv = _argv(instance, found, command, **options)
    settings = read_settings(sys.argv[1:])
    if settings.is_json or settings.is_events:
        return Result(document={"argv": argv, kind: found})
    try:
        process.replace_process(process.Command(argv=tuple(argv), env=dict(os.environ)))
    except process.ProgramMissingError as err:
        raise process.ProgramMissingError(
            "`ssh` was not found.",
            remedy=f"Install OpenSSH's client, or connect with another one: {shlex.join(argv)}",
        ) from err


def _find(client: LabClient, name: str) -> tuple[str, dict[str, Any]]:
    """Return the guest of a name or number, else the node of that name, each with the word for it."""
    from stackyard.cli.commands.lab.client import LabRefusedError  # lazy: ssl, as above

    try:
        return "guest", client.call("GET", "/guests", name=name)["guests"][0]
    except LabRefusedError:
        nodes = client.call("GET", "/nodes")["nodes"]
        for node in nodes:
            if node["name"] == name:
                return "node", node
        raise


def _argv(
    instance: Instance,
    found: dict[str, Any],
    command: tuple[str, ...],
    *,
    user: str | None,
    identity: str | None,
) -> list[str]:
    if found["port"] is None:
        why = "has no address" if found["status"] == "running" else f"is {found['status']}"
        kind = "guest" if "vmid" in found else "node"
        raise GuestUnreachableError(f"The {kind} '{found['name']}' {why}.")
    chosen = user or next(iter(found["users"]), "root" if found["takes_owner_key"] else None)
    if chosen is None:
        raise GuestUnreachableError(
            f"No user can log in to '{found['name']}': its cloud-init names no user.",
            remedy="Give it a cloud-init drive with a user and a key, or name one with --user.",
        )
    alias = f"guest-{found['vmid']}" if "vmid" in found else f"node-{found['name']}"
    known = instance.folder / "known_hosts" / alias.removeprefix("guest-")
    _write_known(known, f"{alias} {found['host_key']}\n")
    options = {
        "UserKnownHostsFile": str(known),
        "GlobalKnownHostsFile": os.devnull,
        "StrictHostKeyChecking": "yes",
        "HostKeyAlias": alias,
    }
    argv = ["ssh", "-p", str(found["port"])]
    for key, value in options.items():
        argv += ["-o", f"{key}={value}"]
    if identity is not None:
        argv += ["-i", str(Path(identity).expanduser().absolute()), "-o", "IdentitiesOnly=yes"]
    argv.append(f"{chosen}@{found['host']}")
    return [*argv, "--", *command] if command else argv


def _write_known(path: Path, line: str) -> None:
    from stackyard.base import files  # lazy: with what it imports, for this verb only

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace_file(path, line.encode())
