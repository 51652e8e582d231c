"""The options that changes of running clusters share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cluster_name", "go_options", "health_option", "nodes_option"]

Function = TypeVar("Function", bound="Callable[..., Any]")

cluster_name: Callable[[Any], Any] = click.argument("name", metavar="[CLUSTER]", required=False)
nodes_option: Callable[[Any], Any] = click.option(
    "--node", "nodes", metavar="NAME", multiple=True, help="Only this node; may be given again."
)
health_option: Callable[[Any], Any] = click.option(
    "--without-kubernetes",
    is_flag=True,
    help="Look at Talos and etcd alone between nodes, where no network plugin makes nodes Ready.",
)


def go_options(function: Function) -> Function:
    """Add how a change goes on from node to node."""
    options = (
        click.option("--dry-run", is_flag=True, help="Show what would be changed, and change nothing."),
        click.option("--yes", "-y", is_flag=True, help="Do not ask."),
        click.option(
            "--timeout",
            "timeout_s",
            metavar="SECONDS",
            type=click.FloatRange(1),
            default=900.0,
            show_default=True,
            help="How long one node may take, and the cluster to be healthy after it.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function
