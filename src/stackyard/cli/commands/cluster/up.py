"""`stackyard cluster up`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options, reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["up"]


@click.command("up", cls=Command)
@cluster_name
@reach_options
@permit_options
@click.option(
    "--node-wait",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="How long a node may take to answer, and to install Talos (default: 600 and 900).",
)
@click.option(
    "--new-etcd",
    metavar="CLUSTER",
    help="Form a new, empty etcd for this cluster, which had one: everything that it had is lost.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before VMs are created or changed.")
@pass_session
def up(session: Session, /, **values: Any) -> Result:
    """Bring a cluster up: VMs, Talos, etcd, the Kubernetes API, Cilium, and what bootstrap.yaml adds.

    Each step looks first and does only what is missing. So the command can be interrupted at any point and
    run again, and a second run changes nothing. The secrets of the cluster are made once and kept encrypted
    in `talos/talsecret.sops.yaml`; no secret of Talos or Kubernetes is in a state. The command waits until
    bare metal is in maintenance mode. A node that has a configuration keeps it: `stackyard cluster
    apply-config` changes it.

    \b
    stackyard cluster up
    stackyard cluster up home --yes
    """  # noqa: D301 - click reads the control character
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.up import run_up  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_up(session, values))
