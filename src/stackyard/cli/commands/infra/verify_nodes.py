"""`stackyard infra verify-nodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus
from stackyard.cli.command import Command
from stackyard.cli.commands.infra.options import cluster_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.clusters.nodes import NodeReport

__all__ = ["verify_nodes"]

_GIB = 1024**3


@click.command("verify-nodes", cls=Command)
@cluster_option
@pass_session
def verify_nodes(session: Session, /, cluster: str | None) -> Result:
    """Check that every node answers in maintenance mode, and that its install disk is there.

    A node that boots the image of Talos and has no configuration answers on port 50000 of its address. The
    command exits with status 1 if a node does not, or lacks the disk that nodes.yaml names. A link below
    /dev/disk is not checked, and the command says so.
    """
    from stackyard.cli.runs.clusters.infra import choose_cluster  # lazy: the help needs none of it
    from stackyard.path.clusters import nodes  # lazy: gRPC, only for this verb
    from stackyard.sources.cluster import load_cluster  # lazy: as above

    name, folder = choose_cluster(cluster)
    # Nodes in maintenance mode ask for no credentials.
    reports = session.run(nodes.verify_nodes(load_cluster(folder, are_secrets_needed=False)))
    is_ready = all(report.is_ready for report in reports)
    return Result(
        document={"cluster": name, "is_ready": is_ready, "nodes": [_document(one) for one in reports]},
        show=lambda writer: _show(writer, reports),
        status=ExitStatus.DONE if is_ready else ExitStatus.FAILED,
    )


def _document(report: NodeReport) -> dict[str, Any]:
    return {
        "name": report.node.name,
        "address": str(report.node.address),
        "stage": report.stage.value,
        "install_disk": report.node.disk,
        "has_install_disk": report.has_install_disk,
        "is_install_disk_checked": report.is_disk_checked,
        "disks": [
            {"path": disk.path, "serial": disk.serial, "size_bytes": disk.size_bytes} for disk in report.disks
        ],
        "reason": report.reason or None,
    }


def _show(writer: TextWriter, reports: tuple[NodeReport, ...]) -> None:
    rows = [
        (
            report.node.name,
            str(report.node.address),
            report.stage.value,
            ", ".join(f"{disk.path} {disk.size_bytes / _GIB:.0f} GiB" for disk in report.disks) or "-",
        )
        for report in reports
    ]
    writer.table(("node", "address", "stage", "disks"), rows)
    for report in reports:
        if report.reason:
            writer.line(f"{report.node.name}: {report.reason}", style="red")
        elif not report.is_disk_checked:
            writer.line(
                f"{report.node.name}: `{report.node.disk}` is not checked: only the node follows the link. "
                "Compare it with the disks above.",
                style="yellow",
            )
        elif not report.has_install_disk:
            writer.line(
                f"{report.node.name}: there is no disk `{report.node.disk}`; correct `disk` in nodes.yaml.",
                style="red",
            )
    ready = sum(report.is_ready for report in reports)
    style = "green" if ready == len(reports) else "red"
    writer.line(f"{ready} of {len(reports)} nodes are ready for their configuration.", style=style)
