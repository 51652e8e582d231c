"""`stackyard lab`: the Proxmox VE API of our own, started, looked at, steered and stopped."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard import events
from stackyard.cli.command import Later, group
from stackyard.cli.labs.view import name_option, running_result
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.errors import InterruptedRunError

if TYPE_CHECKING:
    from stackyard.cli.labs.instances import Instance
    from stackyard.cli.labs.launch import Wanted

__all__ = ["lab"]

_LATER = {
    "export": Later(
        module="stackyard.cli.commands.lab_export",
        name="export",
        help="Write a seed from a lab that runs, or from a real cluster.",
    ),
    "faults": Later(
        module="stackyard.cli.commands.lab_faults",
        name="faults",
        help="Make calls, tasks, guests, storages and nodes fail on purpose.",
    ),
    "guests": Later(
        module="stackyard.cli.commands.lab_guests",
        name="guests",
        help="List the guests that one can log in to, and how to reach them.",
    ),
    "journal": Later(
        module="stackyard.cli.commands.lab_journal",
        name="journal",
        help="Show the calls that clients made, the oldest first.",
    ),
    "snapshot": Later(
        module="stackyard.cli.commands.lab_snapshot",
        name="snapshot",
        help="Save and restore the whole lab: guests, files, users, tasks, faults.",
    ),
    "ssh": Later(
        module="stackyard.cli.commands.lab_ssh",
        name="ssh",
        help="Log in to a guest, or run a command in it.",
    ),
}


@group("lab", later=_LATER)
def lab() -> None:
    """Run a Proxmox VE API without hardware, to try and test things on.

    It answers as Proxmox VE does to clients such as the bpg/proxmox provider, proxmoxer and Ansible, and has
    an SSH side for what these send there. Programs of this machine run in the sandboxes of its guests only,
    and not at all where there is no bubblewrap.

    \b
    stackyard lab up        start it in the background; it is ready when the command returns
    stackyard lab status    how to reach it
    stackyard lab down      stop it
    """  # noqa: D301 - click reads the control character


@lab.command("up")
@name_option
@click.option(
    "--nodes", metavar="A,B", help="The names of the nodes of a new lab (default: those of the seed)."
)
@click.option("--port", type=click.IntRange(0, 65535), help="The port of the API (default: 8006); 0: any.")
@click.option(
    "--ssh-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="The port of the SSH side (default: 8022, or any with --port 0).",
)
@click.option("--data", metavar="DIR", help="Keep everything in this folder; in memory when absent.")
@click.option(
    "--speed",
    type=click.Choice(["instant", "real"]),
    help="How long tasks and boots take: nothing (default), or as long as on hardware.",
)
@click.option("--latency", metavar="KIND=S,...", help="Seconds for single kinds of work: create=4,boot=12.")
@click.option(
    "--seed",
    metavar="NAME|FILE",
    help="What a new lab holds: empty (default), stock, minimal, homelab, big, small, demo, or a YAML file.",
)
@click.option(
    "--authorized-keys",
    metavar="FILE",
    help="Who may log in over SSH as root with a key; the password of root@pam works always.",
)
@click.option(
    "--allow-downloads",
    is_flag=True,
    help="Really fetch what clients have it download from other machines; stand-ins are made otherwise.",
)
@click.option(
    "--guests",
    type=click.Choice(["recorded", "sandbox", "qemu"]),
    help="What is inside guests: records, a sandbox (default where bubblewrap works), or real VMs by QEMU.",
)
@click.option(
    "--expose",
    metavar="PORT,...",
    help="Ports of this machine that programs in guests reach at the address of their gateway.",
)
@click.option(
    "--bind", metavar="ADDR", help="Listen on this address (default: 127.0.0.1, this machine only)."
)
@click.option("--foreground", is_flag=True, help="Stay, say when it is ready, and run until Ctrl-C.")
@pass_session
def up(session: Session, /, name: str, foreground: bool, **options: Any) -> Result:
    """Start a lab.

    It goes to the background and is ready when the command returns: the address, an API token, the password
    and the SSH port are printed, and `lab status` prints them again. A lab that already runs is left alone.

    \b
    stackyard lab up                                     one node, nothing on it, kept in memory
    stackyard lab up --seed homelab                      three nodes with guests of all sorts
    stackyard lab up --seed big                          20 nodes, 10,000 guests
    stackyard lab up --seed seed.yaml                    a copy of your cluster: see `lab export`
    stackyard lab up --data ~/lab                        what happens in it survives
    stackyard lab up --speed real --latency boot=60      it takes its time
    stackyard lab up --name ci --port 0 --json           a second one, on any free port, for a script
    stackyard lab up --guests qemu                       VMs really boot, from images that you upload
    stackyard lab up --expose 44443                      guests reach what listens here on that port
    stackyard lab up --foreground --json                 one line of JSON when ready, until it is stopped

    The API token has every privilege. The lab listens on this machine only unless --bind says otherwise.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.labs.instances import Instance  # lazy: asyncio, only when this verb runs
    from stackyard.cli.labs.launch import Wanted, launch  # lazy: as above

    wanted = Wanted(**_absolute(options))
    _warn_of_exposure(session, wanted.bind)
    instance = Instance(name)
    if foreground:
        return _stay(session, instance, wanted)
    record, was_running = session.run(launch(instance, wanted))
    return running_result(record, instance, "is already running" if was_running else "is ready")


def _stay(session: Session, instance: Instance, wanted: Wanted) -> Result:
    """Serve until we are told to stop, which is how a server is meant to end."""
    from stackyard.cli.labs.launch import serve  # lazy: asyncio, only when this verb runs

    try:
        session.run(
            serve(
                instance,
                wanted,
                lambda record: session.publish(running_result(record, instance, "is ready", stays=True)),
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
    """Stop a lab, and wait until it has ended.

    What it kept in memory is gone; what it kept in a folder (--data) is there at the next start. It is no
    error if no such lab runs.
    """
    from stackyard.cli.labs.instances import Instance, known_names  # lazy: asyncio, only when this verb runs

    stopped = []
    for one in known_names() if is_all else [name]:
        instance = Instance(one)
        record = instance.read()
        if record is not None:
            session.run(instance.stop(record))
            stopped.append(one)
    text = f"Stopped {', '.join(stopped)}." if stopped else "No such lab is running."
    return Result(document={"stopped": stopped}, show=lambda paper: paper.line(text))


@lab.command("status")
@name_option
def status(name: str) -> Result:
    """Show how to reach a lab that runs.

    With --json it is the object that `lab up --foreground --json` prints when it is ready. Exit status 69: no
    such lab runs.

    \b
    export PROXMOX_VE_API_TOKEN=$(stackyard lab status --json | jq -r .api_token)
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.labs.client import lab_client  # lazy: ssl, only when this verb runs
    from stackyard.cli.labs.instances import Instance  # lazy: asyncio, as above

    instance = Instance(name)
    return running_result(
        instance.require(),
        instance,
        "is running",
        inside=lambda: str(lab_client(name).call("GET", "/status")["inside"]),
    )


@lab.command("reset")
@name_option
@click.option("--seed", metavar="NAME|FILE", help="Another seed than the one that the lab was started with.")
def reset(name: str, seed: str | None) -> Result:
    """Make a lab what it was when it was new: its seed and nothing else.

    Guests, files, users, tasks, faults and the journal go; the password, the API token, the certificate and
    the host keys stay, so that clients need not be told anything new. Snapshots stay too.
    """
    from stackyard.cli.labs.client import lab_client, seed_to_send  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("POST", "/reset", seed=None if seed is None else seed_to_send(seed))
    return Result(
        document=document,
        show=lambda paper: paper.line(f"The lab is new again: {document['guests']} guests."),
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
            f"THE LAB LISTENS ON {bind}: whoever reaches this machine reaches it. It is made for tests and"
            " lacks the defences of a real server."
        )
        session.emit(events.LogLine(level=events.LogLevel.WARNING, source="lab", text=text))
