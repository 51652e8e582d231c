"""`stackyard cluster snapshot` and `stackyard cluster restore`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.result import Result

__all__ = ["restore", "snapshot"]


@click.command("snapshot", cls=Command)
@cluster_name
@click.option(
    "--out",
    metavar="FILE",
    help="Where to write it (default: CLUSTER-etcd-TIME.snapshot.age); never replaced.",
)
@click.option(
    "--recipient",
    "recipients",
    metavar="KEY",
    multiple=True,
    help="Encrypt it for this public key of age or SSH (default: all who can read the cluster's secrets).",
)
@click.option("--unencrypted", is_flag=True, help="Write it in clear, as talosctl does.")
@pass_session
def snapshot(session: Session, /, **values: Any) -> Result:
    """Take a snapshot of etcd: everything that Kubernetes knows, its Secrets too, encrypted with age.

    \b
    stackyard cluster snapshot
    stackyard cluster snapshot home --out /backup/home.snapshot.age

    It is checked before it is written, and only you can read the file. `age -d` opens it too. Keep it where
    the cluster is not, and the age key somewhere else.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.snapshot import run_snapshot  # lazy: the help needs none of it

    return session.run(run_snapshot(session, values))


@click.command("restore", cls=Command)
@click.argument("file", metavar="FILE")
@cluster_name
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_session
def restore(session: Session, /, **values: Any) -> Result:
    """Form the etcd of a new cluster from the snapshot in FILE, in place of an empty one.

    \b
    stackyard infra apply-auto
    stackyard cluster restore home-etcd-20260102T030405Z.snapshot.age
    stackyard cluster up

    The nodes wait in maintenance mode, or have a configuration and no etcd. They get the configurations of
    the files, with the secrets of `talos/talsecret.sops.yaml`; the first control plane node gets the
    snapshot. A cluster that has an etcd is refused.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.snapshot import run_restore  # lazy: the help needs none of it

    return session.run(run_restore(session, values))
