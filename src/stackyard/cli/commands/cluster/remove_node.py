"""`stackyard cluster remove-node`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.lazy_module import pause_garbage_collection
from stackyard.cli.path_options import permit_options, reach_options
from stackyard.cli.session import Session, pass_session
from stackyard.cli.stack_options import note_given_provider

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["remove_node"]


@click.command("remove-node", cls=Command)
@click.argument("nodes", metavar="NODE...", nargs=-1, required=True)
@click.option("--cluster", metavar="CLUSTER", help="The cluster, if the repository has more than one.")
@reach_options
@permit_options
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(1),
    default=300.0,
    show_default=True,
    help="How long etcd may take to be without a node.",
)
@pass_session
def remove_node(session: Session, /, **values: Any) -> Result:
    """Remove nodes that nodes.yaml no longer has: from etcd, their VMs, then from Kubernetes.

    \b
    stackyard cluster remove-node k8s-3
    stackyard cluster remove-node k8s-1 k8s-2 --cluster home

    Take them out of nodes.yaml first, and move their workloads: `kubectl drain k8s-3`. A node that answers
    leaves etcd by itself; otherwise another one removes it, so that a lost node can be removed too. VMs are
    destroyed through the guard: naming a node here allows the destruction of its VM and of nothing else.
    The command can be run again at any point. Bare metal keeps its configuration: reset it.
    """  # noqa: D301 - click reads the control character
    with pause_garbage_collection():
        from stackyard.cli.runs.clusters.remove_node import run_remove_node  # lazy: the help needs none of it

    note_given_provider(values)
    return session.run(run_remove_node(session, values))
