"""Which guests of a cluster some state of the site has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.render.references import CONTAINER, VM
from stackyard.state import StateDeletedError
from stackyard.state.inside import read_view

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from stackyard.site import ConfigResolver
    from stackyard.state import StateService

__all__ = ["managed_guests"]


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
    found: dict[int, str] = {}
    for name in states.names():
        if _is_elsewhere(name, resolver, nodes, endpoint):
            continue
        try:
            content = states.contents.read(name)
        except StateDeletedError:
            continue
        if content is None:
            continue
        for instance in read_view(content.body.data).instances.values():
            vm_id, node = (instance.attributes.get(key) for key in ("vm_id", "node_name"))
            # An id is the only one of its cluster, wherever there the guest has gone since.
            if instance.type in (VM, CONTAINER) and node in nodes and isinstance(vm_id, int):
                found[vm_id] = name
    return found


def _is_elsewhere(name: str, resolver: ConfigResolver, nodes: Collection[str], endpoint: str) -> bool:
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
