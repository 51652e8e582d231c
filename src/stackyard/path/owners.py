"""Which guests of a cluster other states manage."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stackyard.guard import Owners
from stackyard.guard.subjects import short_type
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.guard import Cluster
    from stackyard.path.run import Run
    from stackyard.state.document import Holding
    from stackyard.state.targets import TargetRecord

__all__ = ["is_elsewhere", "node_fingerprints", "read_owners"]


async def read_owners(run: Run, cluster: Cluster) -> Owners:
    """Return what the other states of the store have on a cluster.

    Raises:
        ProxmoxError: The cluster does not answer.
        StoreError: The store cannot say.
    """
    managed = await asyncio.to_thread(read_managed, run.states, but=run.resolved.target.state_name)
    nodes = {node.name for node in cluster.nodes}
    found = {state: ids for state, held in managed.holdings.items() if (ids := _guests(held, nodes))}
    if not found and not managed.unreadable:
        return Owners()
    prints = await node_fingerprints(run)
    elsewhere = {state for state in (*found, *managed.unreadable) if is_elsewhere(run, state, nodes, prints)}
    return Owners(
        states={vm_id: state for state, ids in found.items() if state not in elsewhere for vm_id in ids},
        unreadable=tuple(state for state in managed.unreadable if state not in elsewhere),
    )


def _guests(held: tuple[Holding, ...], nodes: set[str]) -> set[int]:
    return {
        int(identity)
        for kind, node, identity in held
        if short_type(kind) in ("vm", "container") and node in nodes and identity.isdecimal()
    }


async def node_fingerprints(run: Run) -> Mapping[str, str]:
    """Return the nodes of the cluster, each with the fingerprint of its certificate.

    Raises:
        ProxmoxError: The cluster does not answer.
    """
    rows = await run.client.get("/nodes", max_age_s=60.0)
    return {str(row["node"]): str(row.get("ssl_fingerprint", "")) for row in rows}


def is_elsewhere(run: Run, state: str, nodes: set[str], prints: Mapping[str, str]) -> bool:
    """Tell whether a state is certainly for another cluster, one whose nodes may have the same names."""
    record: TargetRecord | None = run.states.targets.read(state)
    if record is None or record.endpoint == run.resolved.connection.endpoint or not record.nodes:
        return False
    return not any(
        name in nodes and prints.get(name) == fingerprint for name, fingerprint in record.nodes.items()
    )
