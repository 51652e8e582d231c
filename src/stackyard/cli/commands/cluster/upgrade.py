"""`stackyard cluster upgrade` and `stackyard cluster upgrade-kubernetes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import (
    cluster_name,
    go_options,
    health_option,
    nodes_option,
)
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["upgrade", "upgrade_kubernetes"]


@click.command("upgrade", cls=Command)
@cluster_name
@nodes_option
@go_options
@health_option
@pass_session
def upgrade(session: Session, /, **values: Any) -> Result:
    """Upgrade Talos to `talos_version` and the schematics of the files, one node at a time.

    \b
    stackyard cluster upgrade --dry-run
    stackyard cluster upgrade --node k8s-1

    Control plane nodes come first, and etcd keeps its quorum. Each node must boot again with the new image,
    and the cluster be healthy, before the next one; the first that is not ends the command. One minor
    version at a time.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.upgrade import run_upgrade  # lazy: the help needs none of it

    return session.run(run_upgrade(session, values))


@click.command("upgrade-kubernetes", cls=Command)
@cluster_name
@go_options
@pass_session
def upgrade_kubernetes(session: Session, /, **values: Any) -> Result:
    """Upgrade Kubernetes to `kubernetes_version` of the files, component by component, node by node.

    \b
    stackyard cluster upgrade-kubernetes --dry-run
    stackyard cluster upgrade-kubernetes home

    The API servers come first, then controller managers, schedulers and kube-proxy, then the kubelets. Each
    must run in its new version, and the cluster be healthy, before the next one. One minor version at a time.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.upgrade import run_kubernetes_upgrade  # lazy: the help needs none of it

    return session.run(run_kubernetes_upgrade(session, values))
