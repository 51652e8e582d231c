"""`stackyard cluster drift` and `stackyard cluster apply-config`."""

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

__all__ = ["apply_config", "drift"]


@click.command("drift", cls=Command)
@cluster_name
@nodes_option
@click.option("--detailed-exitcode", is_flag=True, help="Exit with status 2 if something differs.")
@pass_session
def drift(session: Session, /, **values: Any) -> Result:
    """Show how the configurations that nodes run with differ from the files of the cluster.

    \b
    stackyard cluster drift
    stackyard cluster drift --node k8s-1 --detailed-exitcode

    Values are compared, not text; secrets are masked. The command exits with status 1 if a node cannot be
    asked. VMs have a drift of their own: `stackyard drift cluster:NAME`.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.configuration import run_config_drift  # lazy: the help needs none of it

    return session.run(run_config_drift(values))


@click.command("apply-config", cls=Command)
@cluster_name
@nodes_option
@go_options
@health_option
@pass_session
def apply_config(session: Session, /, **values: Any) -> Result:
    """Give nodes that run the configuration of the files, one node at a time, with health between.

    \b
    stackyard cluster apply-config --dry-run
    stackyard cluster apply-config --node k8s-1

    Control plane nodes come first. Talos decides whether a change needs a reboot; --dry-run shows it. The
    first node after which the cluster is not healthy ends the command, and the other nodes stay as they are.
    Versions of Kubernetes are left to `stackyard cluster upgrade-kubernetes`.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.configuration import run_apply_config  # lazy: the help needs none of it

    return session.run(run_apply_config(session, values))
