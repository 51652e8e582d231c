"""`stackyard cluster nodes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.bootstrap.changes.nodes import ClusterNodes, KubernetesNode, NodeReport
    from stackyard.bootstrap.talos.members import EtcdMember
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["nodes"]


@click.command("nodes", cls=Command)
@cluster_name
@pass_session
def nodes(session: Session, /, name: str | None) -> Result:
    """List the nodes of a cluster as Talos, etcd and Kubernetes know them, and who is there beside them.

    \b
    stackyard cluster nodes
    stackyard cluster nodes home --json

    A member of etcd or a node of Kubernetes that is not in nodes.yaml is listed too: `stackyard cluster
    remove-node` removes it. The command reports; `stackyard cluster health` judges.
    """  # noqa: D301 - click reads the control character
    from stackyard.bootstrap.changes.nodes import read_nodes  # lazy: gRPC, only for this verb
    from stackyard.cli.runs.clusters.opened import LOOK_S, open_talos_cluster  # lazy: as above

    opened = open_talos_cluster(name, timeout_s=LOOK_S)
    found = session.run(read_nodes(opened.cluster, opened.access))
    return Result(
        document=_document(opened.cluster.name, found),
        show=lambda writer: _show(writer, found),
    )


def _document(name: str, found: ClusterNodes) -> dict[str, Any]:
    return {
        "cluster": name,
        "nodes": [_node_document(one) for one in found.reports],
        "strange_etcd_members": [_member_document(one) for one in found.strange_members],
        "strange_kubernetes_nodes": [_kubernetes_document(one) for one in found.strange_nodes],
        "kubernetes_reason": found.kubernetes_reason or None,
    }


def _node_document(one: NodeReport) -> dict[str, Any]:
    return {
        "name": one.node.name,
        "role": one.node.role,
        "address": str(one.node.address),
        "stage": one.stage,
        "talos": one.status.version or None,
        "etcd": one.etcd or None,
        "unmet": list(one.unmet),
        "reason": one.status.reason or None,
        "kubernetes": None if one.kubernetes is None else _kubernetes_document(one.kubernetes),
    }


def _member_document(one: EtcdMember) -> dict[str, Any]:
    # As text: a number of 64 bits is cut by programs that read JSON.
    return {"id": f"{one.number:x}", "name": one.name, "addresses": sorted(one.addresses)}


def _kubernetes_document(one: KubernetesNode) -> dict[str, Any]:
    return {
        "name": one.name,
        "is_ready": one.is_ready,
        "reason": one.reason or None,
        "version": one.version or None,
        "address": one.address or None,
    }


def _show(writer: TextWriter, found: ClusterNodes) -> None:
    headings = ("node", "role", "address", "stage", "Talos", "etcd", "Kubernetes", "kubelet")
    writer.table(headings, [_row(one) for one in found.reports])
    for report in found.reports:
        for text in (*report.unmet, *((report.status.reason,) if report.status.reason else ())):
            writer.line(f"{report.node.name}: {text}", style="yellow")
    if found.kubernetes_reason:
        writer.line(f"Kubernetes: {found.kubernetes_reason}", style="yellow")
    for member in found.strange_members:
        writer.line(
            f"{member.name} ({', '.join(sorted(member.addresses))}) is a member of etcd, and no node of the "
            "file.",
            style="red",
        )
    for node in found.strange_nodes:
        writer.line(f"{node.name} is a node of Kubernetes, and no node of the file.", style="red")


def _row(one: NodeReport) -> tuple[str, ...]:
    kubernetes = one.kubernetes
    ready = "-" if kubernetes is None else "Ready" if kubernetes.is_ready else "NotReady"
    version = "-" if kubernetes is None else kubernetes.version or "-"
    return (
        one.node.name,
        one.node.role,
        str(one.node.address),
        one.stage,
        one.status.version or "-",
        one.etcd or "-",
        ready,
        version,
    )
