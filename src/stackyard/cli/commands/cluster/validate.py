"""`stackyard cluster validate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument
from stackyard.cli.commands.site import show_warnings
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["validate"]


@click.command("validate", cls=Command)
@cluster_argument
def validate(name: str | None) -> Result:
    """Check CLUSTER, or all clusters of the repository, and report all problems at once.

    This reports unknown fields, values that do not fit, networks that overlap, addresses and VM IDs that are
    used twice (by two clusters, too), an etcd without a majority, images that do not fit, and VMs that Talos
    does not boot on, each with file, line and column. It needs no network and no key.

    \b
    stackyard cluster validate
    stackyard cluster validate --json | jq '.error.diagnostics[].detail'
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster.validate import validate_clusters  # lazy: pydantic, only here

    checked = validate_clusters(name)
    clusters, warnings = checked.clusters, checked.found.warnings

    def show(writer: TextWriter) -> None:
        show_warnings(writer, warnings)
        for one in clusters:
            counts = ", ".join(
                f"{len(nodes)} {role}{'' if len(nodes) == 1 else 's'}"
                for role, nodes in (("controller", one.controllers), ("worker", one.workers))
            )
            writer.line(f"{one.name} is valid: {counts}.", style="green")

    return Result(
        document={
            "clusters": [
                {
                    "name": one.name,
                    "folder": str(one.folder),
                    "controllers": len(one.controllers),
                    "workers": len(one.workers),
                }
                for one in clusters
            ],
            "warnings": [finding.document() for finding in warnings],
        },
        show=show,
    )
