"""Nodes and quorum: which nodes there are, which answer, and whether changes are allowed.

Documents: `nodes/<name>` with `nodeid ip online cpus memory started`, and `unreachable`, the reason with
which calls to a node that is down fail; `follows_network` of one that is reached over its own network, and
`cut_off` while that does not lead to it; `cluster/state` with `name` and `quorum` (`lost` when it is taken
away).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pvelab.server.problems import PveError
from pvelab.world.sections import prefix_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from pvelab.world.store import Document, Store

__all__ = ["Cluster"]

_UNREACHABLE = 595


class Cluster:
    """Reads the cluster's documents."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # Runs what starts with a node before its network; set by whoever has the shells of the nodes.
        self.run_boot_units: Callable[[str], Awaitable[None]] | None = None

    @property
    def name(self) -> str:
        """The name of the cluster."""
        state = self._store.get("cluster", "state")
        return str(state["name"]) if state else "lab"

    def nodes(self) -> Mapping[str, Document]:
        """Return all nodes by name."""
        return self._store.items("nodes")

    def local(self) -> str:
        """Return the node that answers calls which name none."""
        names = list(self.nodes())
        return next((name for name in names if self.is_online(name)), names[0] if names else "localhost")

    def is_online(self, node: str) -> bool:
        """Return whether a node is up."""
        found = self._store.get("nodes", node)
        return found is not None and bool(found.get("online", 1))

    @property
    def is_cut_off(self) -> bool:
        """Whether the network of no node leads to it, so that nobody answers."""
        nodes = self.nodes().values()
        return bool(nodes) and all(node.get("cut_off") for node in nodes)

    @property
    def is_quorate(self) -> bool:
        """Whether more than half of the nodes are up, unless quorum was taken away."""
        state = self._store.get("cluster", "state")
        if state is not None and state.get("quorum") == "lost":
            return False
        nodes = self.nodes()
        return 2 * sum(1 for name in nodes if self.is_online(name)) > len(nodes)

    def require_node(self, node: str) -> Document:
        """Return a node that a call can be passed on to.

        Raises:
            PveError: The node is not known (500), or does not answer (595, no body).
        """
        found = self._store.get("nodes", node)
        if found is None:
            problem = f"failed to get address info for: {node}: Name or service not known"
            raise PveError(f"hostname lookup '{node}' failed - {problem}")
        if not found.get("online", 1):
            reason = str(found.get("unreachable") or "No route to host")
            raise PveError(reason, status=_UNREACHABLE, bare=True)
        return found

    def require_member(self, node: str) -> None:
        """Refuse a target that is not a node of the cluster.

        Raises:
            PveError: There is no such node, or it is down.
        """
        if self._store.get("nodes", node) is None:
            raise PveError(f"no such cluster node '{node}'")
        if not self.is_online(node):
            raise PveError(f"node '{node}' is not online")

    def require_quorum(self) -> None:
        """Refuse what needs the cluster to agree (create, start, clone, migrate).

        Raises:
            PveError: There is no quorum.
        """
        if not self.is_quorate:
            raise PveError("cluster not ready - no quorum?")

    def require_writable(self, path: str) -> None:
        """Refuse a change of a file under /etc/pve, which is read-only without quorum.

        Raises:
            PveError: There is no quorum.
        """
        if not self.is_quorate:
            raise PveError(f"unable to open file '/etc/pve/{path}.tmp.1000' - Permission denied")

    @contextlib.contextmanager
    def lock_file(self, lock: str, failure: str | None = None) -> Iterator[None]:
        """Change a file of the whole cluster, whose lock cannot be had without quorum.

        Args:
            lock: The name of the lock: `file-user_cfg`, `firewall-cluster`.
            failure: What is before the text of every refusal in the block.

        Raises:
            PveError: There is no quorum.
        """
        with contextlib.nullcontext() if failure is None else prefix_errors(failure):
            if not self.is_quorate:
                raise PveError(f"cfs-lock '{lock}' error: no quorum!")
            yield
