"""`stackyard cluster name-nodes`."""

from __future__ import annotations

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.cluster.options import cluster_argument
from stackyard.cli.result import Result

__all__ = ["name_nodes"]


@click.command("name-nodes", cls=Command)
@cluster_argument
def name_nodes(name: str | None) -> Result:
    """Write the nodes that `nodes_count` asks for into nodes.yaml.

    The command adds the entries that are missing, each with a name, the next free address and a MAC address.
    Check them before you go on. From then on nodes.yaml says what the nodes are: with a smaller `nodes_count`
    the command refuses, because a number does not say which node goes. Remove the entry of that node.

    \b
    stackyard cluster name-nodes
    stackyard cluster name-nodes staging
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.cluster import find_cluster  # lazy: pydantic, only here
    from stackyard.sources.cluster.name_nodes import name_nodes as write_names  # lazy: as above

    folder = find_cluster(name).folder
    made = write_names(folder)
    said = f"Wrote {', '.join(made)} to {folder / 'nodes.yaml'}." if made else "All nodes have names already."
    return Result(
        document={"folder": str(folder), "nodes": list(made)},
        show=lambda writer: writer.line(said, style="green"),
    )
