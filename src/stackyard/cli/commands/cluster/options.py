"""What the commands of clusters have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stackyard.sources.cluster.load import OpenedCluster

__all__ = ["cluster_argument", "open_named"]

cluster_argument = click.argument("name", metavar="[CLUSTER]", required=False)


def open_named(name: str | None) -> OpenedCluster:
    """Open a cluster by its name; secrets that cannot be decrypted here are no error.

    Raises:
        ClusterNotFoundError: There is none of the name, or several and no name.
    """
    from stackyard.sources.cluster import find_cluster, open_cluster  # lazy: pydantic, only when a verb runs

    return open_cluster(find_cluster(name).folder, are_secrets_needed=False)
