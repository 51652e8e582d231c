"""`stackyard cluster split`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["split"]


@click.command("split", cls=Command)
@cluster_argument
def split(name: str | None) -> Result:
    """Move the secrets out of cluster.yaml or cluster.toml into cluster.sops.yaml, so that git may hold both.

    The secrets are encrypted first, then removed from the other file, and .gitignore changes last. If the
    command is stopped, run it again. Comments and the order of the file stay. Nothing that is generated
    changes.

    \b
    stackyard cluster split
    git add cluster.yaml nodes.yaml cluster.sops.yaml .sops.yaml .gitignore
    """  # noqa: D301 - click reads the control character
    from stackyard.path.clusters.split import split_secrets  # lazy: cryptography, for this verb
    from stackyard.sources.cluster import find_cluster  # lazy: as above
    from stackyard.sources.cluster.fields import list_secret_names  # lazy: as above

    found = find_cluster(name)
    report = split_secrets(found.folder, list_secret_names())

    def show(writer: TextWriter) -> None:
        if report.moved:
            writer.line(f"cluster.sops.yaml now has: {', '.join(report.moved)}")
        for line in report.unignored:
            writer.line(f"{'added to' if line.startswith('!') else 'removed from'} .gitignore: {line}")
        if not report.moved and not report.unignored:
            writer.line(f"{report.file} has no secrets; nothing was changed.")

    document = {"cluster": found.name, "moved": list(report.moved), "unignored": list(report.unignored)}
    return Result(document=document, show=show)
