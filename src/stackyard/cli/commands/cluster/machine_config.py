"""`stackyard cluster machine-config`."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

__all__ = ["machine_config"]


@click.command("machine-config", cls=Command)
@click.argument("node", metavar="NODE")
@cluster_name
@click.option(
    "--running", "is_running", is_flag=True, help="The one that the node runs with, not the files'."
)
@click.option(
    "--out", metavar="FILE", help="Write it whole, with its secrets, to a new file that only you can read."
)
@pass_session
def machine_config(
    session: Session, /, node: str, name: str | None, *, is_running: bool, out: str | None
) -> Result:
    """Print the machine configuration of NODE, with its secrets masked.

    \b
    stackyard cluster machine-config k8s-0
    stackyard cluster machine-config k8s-0 --running
    stackyard cluster machine-config k8s-0 --out k8s-0.yaml    for talosctl validate

    It is what `stackyard cluster up` and `stackyard cluster apply-config` give the node: made of the files,
    the secrets of the cluster and your patches.
    """  # noqa: D301 - click reads the control character
    from stackyard.cli.runs.clusters.machine_config import read_machine_config  # lazy: as for its siblings

    text = session.run(read_machine_config(node, name, is_running=is_running, out=out))
    if out is not None:
        return Result(
            document={"node": node, "file": out},
            show=lambda writer: writer.line(f"Wrote {out}: it holds secrets of the cluster."),
        )
    return Result(document={"node": node, "config": text}, show=lambda writer: writer.text(text))
