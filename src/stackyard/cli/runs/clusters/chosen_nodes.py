"""The nodes that a command is about, and the question before they are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import NotConfirmedError, UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.confirmation import can_ask, confirm

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["choose_nodes", "require_change_confirmed"]


def choose_nodes(cluster: Cluster, names: tuple[str, ...]) -> tuple[ClusterNode, ...]:
    """Return the nodes that are named, all where none is, in the order of the file.

    Raises:
        UsageError: There is no node of a name.
    """
    known = [node.name for node in cluster.nodes]
    for name in names:
        if name not in known:
            raise UsageError(f"{cluster.name} has no node `{name}`.{did_you_mean(name, known)}")
    return tuple(node for node in cluster.nodes if not names or node.name in names)


async def require_change_confirmed(
    session: Session, question: str, show: Callable[[TextWriter], None]
) -> None:
    """Show a change at a terminal and ask for a yes; where there is no terminal, nobody is asked.

    Raises:
        NotConfirmedError: The answer was no; nothing was changed.
    """
    if can_ask(session) and not await confirm(session, question, show):
        raise NotConfirmedError("Nothing was changed.")
