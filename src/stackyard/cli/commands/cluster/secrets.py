"""`stackyard cluster import-secrets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.change_options import cluster_name
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["import_secrets"]


@click.command("import-secrets", cls=Command)
@click.argument("file", metavar="FILE")
@cluster_name
@pass_session
def import_secrets(session: Session, /, file: str, name: str | None) -> Result:
    """Keep the secrets in FILE, made by talosctl, talhelper or topf, encrypted as those of a cluster.

    \b
    talosctl gen secrets
    stackyard cluster import-secrets secrets.yaml
    stackyard cluster import-secrets talsecret.sops.yaml home

    FILE is a secrets bundle, in clear or encrypted with SOPS; it is checked, and it is not changed. The
    bundle is written to `talos/talsecret.sops.yaml`. A cluster that has secrets is refused: other secrets
    would be another cluster.
    """  # noqa: D301 - click reads the control character
    del session
    from stackyard.cli.runs.clusters.secrets import import_cluster_secrets  # lazy: the help needs none of it

    cluster, path, is_clear = import_cluster_secrets(file, name)

    def show(writer: TextWriter) -> None:
        writer.line(f"Wrote {path}: the secrets of {cluster}, encrypted.", style="green")
        if is_clear:
            writer.line(
                f"{file} has them in clear: remove it, and replace them if git had it.", style="yellow"
            )

    return Result(document={"cluster": cluster, "file": path, "is_source_in_clear": is_clear}, show=show)
