"""`stackyard cluster status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.bootstrap.talos.status import NodeStatus
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["status"]


@click.command("status", cls=Command)
@cluster_name
@pass_session
def status(session: Session, /, name: str | None) -> Result:
    """Show what every node of a cluster says: its stage, its version, services that are not healthy.

    The command exits with status 1 if a node does not run or a service is not healthy.
    """
    from stackyard.bootstrap.talos.access import TalosAccess  # lazy: gRPC, only for this verb
    from stackyard.bootstrap.talos.status import read_status  # lazy: as above
    from stackyard.cli.runs.clusters.access import open_cluster_secrets  # lazy: as above

    cluster, bundle = open_cluster_secrets(name)
    found = session.run(read_status(cluster, TalosAccess.of(bundle)))
    is_healthy = all(one.is_healthy for one in found)
    return Result(
        document={
            "cluster": cluster.name,
            "is_healthy": is_healthy,
            "nodes": [_document(one) for one in found],
        },
        show=lambda writer: _show(writer, found),
        status=ExitStatus.DONE if is_healthy else ExitStatus.FAILED,
    )


def _document(one: NodeStatus) -> dict[str, Any]:
    return {
        "name": one.node.name,
        "role": one.node.role,
        "address": str(one.node.address),
        "stage": one.stage,
        "version": one.version or None,
        "unhealthy": list(one.unhealthy),
        "reason": one.reason or None,
    }


def _show(writer: TextWriter, found: tuple[NodeStatus, ...]) -> None:
    rows = [
        (one.node.name, one.node.role, str(one.node.address), one.stage, one.version or "-") for one in found
    ]
    writer.table(("node", "role", "address", "stage", "Talos"), rows)
    for one in found:
        for text in (*one.unhealthy, *((one.reason,) if one.reason else ())):
            writer.line(f"{one.node.name}: {text}", style="red")
