"""`stackyard cluster health`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.bootstrap.changes.health import Problem
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["health"]


@click.command("health", cls=Command)
@cluster_name
@click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=0.0,
    help="Wait this long until the cluster is healthy (default: say how it is now).",
)
@click.option(
    "--without-kubernetes",
    is_flag=True,
    help="Ask Talos and etcd alone: without a network plugin no node of Kubernetes is ready.",
)
@pass_session
def health(session: Session, /, name: str | None, *, wait_s: float, without_kubernetes: bool) -> Result:
    """Check the nodes of a cluster, their services, etcd and Kubernetes; say what is not healthy.

    \b
    stackyard cluster health
    stackyard cluster health home --wait 300

    A cluster is healthy if every node runs and is ready, its services do, etcd has exactly the control plane
    nodes of nodes.yaml as members with a leader, and every node is Ready in Kubernetes. Otherwise the
    command exits with status 1.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.health import read_health  # lazy: gRPC, only for this verb
    from stackyard.cli.runs.clusters.opened import LOOK_S, open_talos_cluster  # lazy: as above

    opened = open_talos_cluster(name, timeout_s=LOOK_S)
    problems = session.run(
        read_health(session.emit, opened, wait_s=wait_s, needs_kubernetes=not without_kubernetes)
    )
    return Result(
        document={
            "cluster": opened.cluster.name,
            "is_healthy": not problems,
            "problems": [{"part": one.part, "text": one.text} for one in problems],
        },
        show=lambda writer: _show(writer, opened.cluster.name, problems),
        status=ExitStatus.FAILED if problems else ExitStatus.DONE,
    )


def _show(writer: TextWriter, name: str, problems: tuple[Problem, ...]) -> None:
    for one in problems:
        writer.line(str(one), style="red")
    if not problems:
        writer.line(f"The cluster {name} is healthy.", style="green")
