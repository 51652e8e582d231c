"""`stackyard cluster destroy`."""

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

__all__ = ["destroy"]


@click.command("destroy", cls=Command)
@cluster_name
@reach_options
@permit_options
@click.option("--dry-run", is_flag=True, help="Show what would be destroyed, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    help="How long bare metal may take to be back in maintenance mode.",
)
@pass_session
def destroy(session: Session, /, **values: Any) -> Result:
    """Destroy a cluster: its VMs and their disks, and what is on bare metal.

    \b
    stackyard cluster destroy --dry-run
    stackyard cluster destroy home --allow-destroy k8s-0,k8s-1

    Name every node with --allow-destroy. Without it, the command refuses and prints the command to repeat.
    VMs are destroyed through Proxmox VE alone, so they need not answer. Bare metal is wiped if it answers;
    the command names the machines that do not, and exits with status 1. The secrets of the cluster stay in
    `talos/talsecret.sops.yaml`. Once nothing is left, the next `stackyard cluster up` forms an empty etcd.
    """  # noqa: D301 - click reads the control character
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.destroy import run_cluster_destroy  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_cluster_destroy(session, values))
