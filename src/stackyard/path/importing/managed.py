"""Which guests of a cluster some state of the site has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.state.guests import list_indexed_vm_ids
from stackyard.state.inside import EncryptedStateError
from stackyard.state.managed import read_managed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.sources.site import ConfigResolver
    from stackyard.state import StateService

__all__ = ["is_elsewhere", "managed_guests"]


def managed_guests(
    states: StateService, resolver: ConfigResolver, nodes: Collection[str], endpoint: str
) -> Mapping[int, str]:
    """Return the names of the states that have guests of a cluster, by vm id.

    Args:
        states: All states of the site.
        resolver: The site, which knows the clusters that the states are for.
        nodes: The nodes of the cluster, as Proxmox calls them.
        endpoint: The API of the cluster.

    Raises:
        EncryptedStateError: A state cannot be looked into, so that nobody can say what it has.
    """
    managed = read_managed(states)
    for name in managed.unreadable:
        if not is_elsewhere(name, resolver, nodes, endpoint):
            raise EncryptedStateError(f"{name} may have guests of this cluster, and cannot be looked into.")
    # An id is the only one of its cluster, wherever there the guest has gone since.
    return {
        vm_id: name
        for name, held in managed.holdings.items()
        if not is_elsewhere(name, resolver, nodes, endpoint)
        for vm_id in list_indexed_vm_ids(held, nodes)
    }


def is_elsewhere(name: str, resolver: ConfigResolver, nodes: Collection[str], endpoint: str) -> bool:
    """Tell whether a state is for a node of the same name in another cluster."""
    node = resolver.site.nodes.get(name.rpartition("/")[2])
    if node is None or node.model.api_endpoint == endpoint:
        return False
    # A node that this cluster has is reached through another of its nodes, unless two clusters call it alike.
    same_name = [
        other
        for other in resolver.site.nodes.values()
        if (other.model.node or other.name) == (node.model.node or node.name)
    ]
    return (node.model.node or node.name) not in nodes or len(same_name) > 1
