"""What of a cluster other states manage."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Protocol

from stackyard.guard import Owned, Owners
from stackyard.guard.subjects import FILES, short_type
from stackyard.state.guests import list_indexed_vm_ids

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients import proxmox
    from stackyard.guard import Cluster
    from stackyard.state import StateService
    from stackyard.state.document import Holding
    from stackyard.state.managed import ManagedResources
    from stackyard.state.targets import TargetRecord

__all__ = ["ClusterRun", "StateLocality", "node_fingerprints", "place_of", "read_owners"]


class ClusterRun(Protocol):
    """A run on a Proxmox cluster, as far as owners of objects are concerned."""

    @property
    def client(self) -> proxmox.Client:
        """Speaks to the cluster."""
        ...

    @property
    def endpoint(self) -> str:
        """The address of its API."""
        ...

    @property
    def states(self) -> StateService:
        """The states."""
        ...


class StateLocality(enum.Enum):
    """Where the resources of a state are."""

    HERE = "here"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


async def read_owners(run: ClusterRun, cluster: Cluster, managed: ManagedResources) -> Owners:
    """Return what the other states of the store have on a cluster.

    Args:
        run: The run.
        cluster: The cluster.
        managed: What the other states have.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say.
    """
    nodes = {node.name for node in cluster.nodes}
    found = {state: ids for state, held in managed.holdings.items() if (ids := _list_owned(held, nodes))}
    files = {
        identity: state
        for state, held in managed.holdings.items()
        for kind, node, identity in held
        if short_type(kind) in FILES and node in nodes
    }
    if not found and not managed.unreadable:
        return Owners(files=files)
    prints = await node_fingerprints(run)
    places = {state: place_of(run, state, nodes, prints) for state in (*found, *managed.unreadable)}
    return Owners(
        states=_by_id(found, places, StateLocality.HERE),
        maybe=_by_id(found, places, StateLocality.UNKNOWN),
        unreadable=tuple(
            state for state in managed.unreadable if places[state] is not StateLocality.ELSEWHERE
        ),
        files=files,
    )


def _by_id(
    found: Mapping[str, set[Owned]], places: Mapping[str, StateLocality], place: StateLocality
) -> dict[Owned, str]:
    return {owned: state for state, ids in found.items() if places[state] is place for owned in ids}


def _list_owned(held: tuple[Holding, ...], nodes: set[str]) -> set[Owned]:
    """Return the guests and other objects among what a state has; files have rules of their own."""
    others = (*FILES, "vm", "container")
    found: set[Owned] = set(list_indexed_vm_ids(held, nodes))
    for kind, node, identity in held:
        short = short_type(kind)
        # What has no node belongs to the whole cluster.
        if short not in others and (not node or node in nodes):
            found.add((short, identity))
    return found


async def node_fingerprints(run: ClusterRun) -> Mapping[str, str]:
    """Return the nodes of the cluster, each with the fingerprint of its certificate.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    rows = await run.client.get("/nodes", max_age_s=60.0)
    return {str(row["node"]): str(row.get("ssl_fingerprint", "")) for row in rows}


def place_of(run: ClusterRun, state: str, nodes: set[str], prints: Mapping[str, str]) -> StateLocality:
    """Return whether a state is for the cluster of a run, or for another whose nodes may have the same names.

    Args:
        run: The run.
        state: The other state.
        nodes: The nodes of the cluster.
        prints: The fingerprints of their certificates.
    """
    record: TargetRecord | None = run.states.targets.read(state)
    if record is None or record.endpoint == run.endpoint or not record.nodes:
        return StateLocality.HERE
    common = nodes.intersection(record.nodes)
    if not common:
        return StateLocality.ELSEWHERE
    is_same = any(prints.get(name) and prints[name] == record.nodes[name] for name in common)
    # Certificates are renewed: that none is the same proves nothing.
    return StateLocality.HERE if is_same else StateLocality.UNKNOWN
