"""`stackyard lab`: start, inspect, control and stop the simulator of the Proxmox VE API."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base import events
from stackyard.base.errors import InterruptedRunError
from stackyard.cli.command import LazyCommand, group
from stackyard.cli.commands.lab.view import make_running_result, name_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.commands.lab.instances import Instance
    from stackyard.cli.commands.lab.launch import LabRequest

__all__ = ["lab"]

_LATER = {
    "export": LazyCommand(
        module="stackyard.cli.commands.lab.export",
        name="export",
        help="Write a seed from a running lab or from a real cluster.",
    ),
    "faults": LazyCommand(
        module="stackyard.cli.commands.lab.faults",
        name="faults",
        help="Inject faults into requests, tasks, guests, storages and nodes.",
    ),
    "guests": LazyCommand(
        module="stackyard.cli.commands.lab.guests",
        name="guests",
        help="List the guests that you can log in to, and how to reach them.",
    ),
    "journal": LazyCommand(
        module="stackyard.cli.commands.lab.journal",
        name="journal",
        help="Show the requests that clients sent, oldest first.",
    ),
    "list": LazyCommand(
        module="stackyard.cli.commands.lab.list",
        name="list_labs",
        help="List the running labs. `stackyard lab status --name NAME` shows how to log in to one.",
    ),
    "snapshot": LazyCommand(
        module="stackyard.cli.commands.lab.snapshot",
        name="snapshot",
        help="Save and restore the whole lab: guests, files, users, tasks, faults.",
    ),
    "ssh": LazyCommand(
        module="stackyard.cli.commands.lab.ssh",
        name="ssh",
        help="Log in to a guest or a node, or run a command there.",
    ),
}


@group("lab", later=_LATER)
def lab() -> None:
    """Run a simulator of the Proxmox VE API, for tests without hardware.

    It behaves like Proxmox VE to clients such as the bpg/proxmox provider, proxmoxer and Ansible. It also has
    an SSH server for the commands that these clients send over SSH. Programs of this machine run only in the
    sandboxes of its guests; without bubblewrap, none run.

    \b
    stackyard lab up        start a lab in the background; it is ready when the command returns
    stackyard lab status    show how to reach it
    stackyard lab list      show which labs run
    stackyard lab down      stop it
    """  # noqa: D301 - click reads the control character


@lab.command("up")
@name_option
@click.option(
    "--nodes", metavar="A,B", help="The names of the nodes of a new lab (default: those of the seed)."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port of the API (default: 8006); 0: any free port."
)
@click.option(
    "--ssh-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port of the SSH server (default: 8022, or any with --port 0).",
)
@click.option("--data", metavar="DIR", help="Keep all data in this folder (default: in memory).")
@click.option(
    "--speed",
    type=click.Choice(["instant", "real"]),
    help="How long tasks and boots take: no time (default), or as long as on hardware.",
)
@click.option(
    "--latency", metavar="KIND=S,...", help="The seconds that a kind of work takes: create=4,boot=12."
)
@click.option(
    "--seed",
    metavar="NAME|FILE",
    help="The seed of a new lab: empty (default), stock, minimal, homelab, big, small, demo, or a YAML file.",
)
@click.option(
    "--authorized-keys",
    metavar="FILE",
    help="The public keys that may log in as root over SSH. The password of root@pam always works.",
)
@click.option(
    "--allow-downloads",
    is_flag=True,
    help="Download files from other machines when clients request it. Otherwise the lab creates "
    "placeholders.",
)
@click.option(
    "--guests",
    type=click.Choice(["recorded", "sandbox", "qemu"]),
    help="What runs inside guests: nothing (records only), a sandbox (default if bubblewrap works), "
    "or real VMs in QEMU.",
)
@click.option(
    "--expose",
    metavar="PORT,...",
    help="Ports of this machine that guests can reach at the address of their gateway.",
)
@click.option(
    "--guest-network",
    metavar="CIDR",
    help="The network of vmbr0 (default: 10.31.0.0/16). You reach guests of one in 127.0.0.0/8 at their "
    "addresses.",
)
@click.option(
    "--factory-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Run an image factory for Talos on this port; 0: any free port.",
)
@click.option(
    "--truenas-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Run a TrueNAS on this port, with one pool and the certificate of the lab; 0: any free port.",
)
@click.option(
    "--kubernetes",
    type=click.Choice(["double", "real"]),
    help="What answers behind Talos machines: a double (default), or kube-apiserver and etcd of "
    "`stackyard tools install kube-test`.",
)
@click.option(
    "--bind", metavar="ADDR", help="Listen on this address (default: 127.0.0.1, this machine only)."
)
@click.option(
    "--foreground",
    is_flag=True,
    help="Stay in the foreground, report when the lab is ready, and run until Ctrl-C.",
)
@pass_session
def up(session: Session, /, name: str, foreground: bool, **options: Any) -> Result:
    """Start a lab.

    The lab runs in the background and is ready when the command returns. The command prints the address, an
    API token, the password and the SSH port; `lab status` prints them again. If the lab already runs, the
    command does not change it.

    \b
    stackyard lab up                                     one empty node, kept in memory
    stackyard lab up --seed homelab                      three nodes with various guests
    stackyard lab up --seed big                          20 nodes, 10,000 guests
    stackyard lab up --seed seed.yaml                    a copy of your cluster: see `lab export`
    stackyard lab up --data ~/lab                        keep all data in a folder
    stackyard lab up --speed real --latency boot=60      tasks take as long as on hardware
    stackyard lab up --name ci --port 0 --json           a second lab, on any free port, for a script
    stackyard lab up --guests qemu                       VMs boot in QEMU, from images that you upload
    stackyard lab up --expose 44443                      guests reach this port of your machine
    stackyard lab up --factory-port 0                    with an image factory: VMs boot Talos
    stackyard lab up --truenas-port 0                    with a TrueNAS, for datasets
    stackyard lab up --foreground --json                 stay; print one line of JSON when ready

    The API token has every privilege. The lab listens on this machine only, unless you set --bind.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.lab.instances import Instance  # lazy: asyncio, only when this verb runs
    from stackyard.cli.commands.lab.launch import LabRequest, launch  # lazy: as above

    wanted = LabRequest(**_absolute(options))
    _warn_of_exposure(session, wanted.bind)
    instance = Instance(name)
    if foreground:
        return _stay(session, instance, wanted)
    record, was_running = session.run(launch(instance, wanted))
    return make_running_result(record, instance, "is already running" if was_running else "is ready")


def _stay(session: Session, instance: Instance, wanted: LabRequest) -> Result:
    """Serve until we are asked to stop, which is how a server is meant to end."""
    from stackyard.cli.commands.lab.launch import serve  # lazy: asyncio, only when this verb runs

    try:
        session.run(
            serve(
                instance,
                wanted,
                lambda record: session.publish(make_running_result(record, instance, "is ready", stays=True)),
            )
        )
    except InterruptedRunError as stopped:
        return Result(document={"stopped": stopped.detail})
    return Result(document={"stopped": "by itself"})


@lab.command("down")
@name_option
@click.option("--all", "is_all", is_flag=True, help="Stop every lab of this user.")
@pass_session
def down(session: Session, name: str, is_all: bool) -> Result:
    """Stop a lab and wait until it has stopped.

    A lab in memory loses its data. A lab with a folder (--data) has its data again at the next start. If no
    such lab runs, that is not an error.
    """
    from stackyard.cli.commands.lab.instances import (  # lazy: asyncio, only when this verb runs
        Instance,
        list_running_names,
    )

    stopped = []
    for one in list_running_names() if is_all else [name]:
        instance = Instance(one)
        record = instance.read()
        if record is not None:
            session.run(instance.stop(record))
            stopped.append(one)
    text = f"Stopped {', '.join(stopped)}." if stopped else "No such lab is running."
    return Result(document={"stopped": stopped}, show=lambda writer: writer.line(text))


@lab.command("status")
@name_option
def status(name: str) -> Result:
    """Show how to reach a running lab.

    With --json, the output is the object that `lab up --foreground --json` prints when the lab is ready. Exit
    status 69: no such lab runs.

    \b
    export PROXMOX_VE_API_TOKEN=$(stackyard lab status --json | jq -r .api_token)
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs
    from stackyard.cli.commands.lab.instances import Instance  # lazy: asyncio, as above

    instance = Instance(name)
    return make_running_result(
        instance.require(),
        instance,
        "is running",
        inside=lambda: str(lab_client(name).call("GET", "/status")["inside"]),
    )


@lab.command("reset")
@name_option
@click.option("--seed", metavar="NAME|FILE", help="A different seed from the one at the start of the lab.")
def reset(name: str, seed: str | None) -> Result:
    """Reset a lab to its seed.

    This removes guests, files, users, tasks, faults and the journal. The password, the API token, the
    certificate and the host keys stay, and clients need no new settings. Snapshots stay too.
    """
    from stackyard.cli.commands.lab.client import (  # lazy: ssl, only when this verb runs
        lab_client,
        seed_to_send,
    )

    document = lab_client(name).call("POST", "/reset", seed=None if seed is None else seed_to_send(seed))
    return Result(
        document=document,
        show=lambda writer: writer.line(f"The lab is new again: {document['guests']} guests."),
    )


def _absolute(options: dict[str, Any]) -> dict[str, Any]:
    """Make paths absolute: the process that uses them may be in another folder."""
    found = dict(options)
    for name in ("data", "authorized_keys", "seed"):
        given = found[name]
        is_path = name != "seed" or (
            given is not None and (given.endswith((".json", ".yaml", ".yml")) or "/" in given)
        )
        if given is not None and is_path:
            found[name] = str(Path(given).absolute())
    return found


def _warn_of_exposure(session: Session, bind: str | None) -> None:
    try:
        is_local = bind is None or bind == "localhost" or ipaddress.ip_address(bind).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        text = (
            f"THE LAB LISTENS ON {bind}: everyone who reaches this machine reaches it. It is for tests and"
            " lacks the defences of a real server."
        )
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="lab", text=text))
