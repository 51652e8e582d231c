"""`stackyard cluster init`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.cluster.new_cluster import CreatedCluster, LabPlace

__all__ = ["init"]


@click.command("init", cls=Command)
@click.argument("folder", metavar="[DIR]", required=False, default=".")
@click.option("--name", metavar="NAME", help="The name of the cluster.")
@click.option("--bare-metal", is_flag=True, help="The nodes are bare metal, not VMs on Proxmox VE.")
@click.option(
    "--nodes",
    "node_count",
    type=click.IntRange(1, 200),
    default=3,
    metavar="N",
    help="How many nodes (default: 3). Three are controllers, or one if there are fewer; others are workers.",
)
@click.option("--lab", "lab_name", metavar="NAME", help="Fill in this running lab, and its token.")
def init(folder: str, name: str | None, bare_metal: bool, node_count: int, lab_name: str | None) -> Result:
    """Write commented files of a cluster to start with into DIR (default: the current folder).

    They are cluster.yaml, nodes.yaml, and cluster.sops.yaml for the secrets, which SOPS encrypts for your age
    key; if you have none, the command creates one. A rule in .sops.yaml is added if there is no such file.
    Nothing is overwritten. All of them belong in git: the secrets are encrypted.

    Change the addresses and names to yours. From then on nodes.yaml lists the nodes: to grow a cluster, add
    entries to it.

    \b
    stackyard cluster init --name home --nodes 5
    stackyard cluster init --lab default
    stackyard cluster init clusters/staging
    stackyard secrets edit clusters/staging/cluster.sops.yaml
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster.new_cluster import NewCluster, start_cluster  # lazy: cryptography

    if bare_metal and lab_name is not None:
        raise UsageError("The nodes of a lab are VMs: leave out --bare-metal or --lab.")
    lab = None if lab_name is None else _find_lab(lab_name)
    made = start_cluster(
        Path(folder), NewCluster(name=name, is_virtual=not bare_metal, node_count=node_count, lab=lab)
    )
    return Result(
        document={
            "folder": str(made.folder),
            "files": list(made.files),
            "age_recipient": made.recipient,
            "age_key_made": None if made.new_key is None else str(made.new_key),
        },
        show=lambda writer: _show(writer, made, secret=_missing_secret(lab, is_bare=bare_metal)),
    )


def _find_lab(name: str) -> LabPlace:
    """Return a running lab.

    Raises:
        UsageError: It does not run, or its guests cannot be Talos machines that this machine reaches.
    """
    from ipaddress import IPv4Network  # lazy: only with --lab

    from stackyard.cli.commands.lab.instances import Instance  # lazy: asyncio, only with --lab
    from stackyard.sources.cluster.new_cluster import LabPlace  # lazy: as above

    record = Instance(name).read()
    remedy = "Start one: `stackyard lab up --factory-port 0 --guest-network 127.80.0.0/16`."
    if record is None:
        raise UsageError(f"No lab called '{name}' runs.", remedy=remedy)
    network, factory = record.options.get("guest-network"), record.ready.get("factory_url")
    if not factory or not str(network).startswith("127."):
        raise UsageError(
            f"The lab '{name}' has no image factory, or its guests are not in 127.0.0.0/8, where this host "
            "reaches them.",
            remedy=remedy,
        )
    return LabPlace(
        url=record.ready["url"],
        nodes=tuple(record.ready["nodes"]),
        api_token=record.ready["api_token"],
        factory=factory,
        network=IPv4Network(network),
    )


def _missing_secret(lab: object | None, *, is_bare: bool) -> str:
    """Return which secret the user has to add; none for a lab, whose token is known."""
    if lab is not None:
        return ""
    return "the passphrase of the state" if is_bare else "the API token"


def _show(writer: TextWriter, made: CreatedCluster, *, secret: str) -> None:
    writer.line(f"Wrote {', '.join(str(made.folder / name) for name in made.files)}.", style="green")
    if made.new_key is not None:
        writer.line(f"Made an age key for you in {made.new_key}: back it up, only it decrypts your secrets.")
    if made.has_old_rules:
        writer.line(".sops.yaml was there already and is unchanged: add a rule for cluster.sops.yaml to it.")
    writer.line()
    writer.line("Next:")
    for command, what in (
        *(((f"stackyard secrets edit {made.folder / 'cluster.sops.yaml'}", secret),) if secret else ()),
        ("stackyard cluster validate", "after every change"),
        ("stackyard cluster show", "the nodes, with all values resolved"),
        ("stackyard cluster configure", "writes infrastructure/"),
    ):
        writer.line(f"  {command:<52} # {what}")
