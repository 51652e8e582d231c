"""Which target has the networks and pools of site.yaml: each object belongs to one hypervisor.

Interfaces of a node belong to the file that describes the node, pools and the SDN to the file of its cluster.
A site without such files has them all the same: then the node itself names the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.sources.hypervisor.node_names import call_node, choose_node_file

if TYPE_CHECKING:
    from stackyard.sources.site.load import Site
    from stackyard.sources.site.tree import LoadedFile

__all__ = [
    "SharedOwners",
    "SharedParts",
    "find_node_file",
    "find_node_name",
    "find_owners",
    "find_shared_parts",
    "list_implied",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedOwners:
    """The hypervisors that have what site.yaml makes on a node.

    Attributes:
        interfaces: The one with its bridges and VLANs.
        cluster_wide: The one with the pools and the SDN of its cluster.
    """

    interfaces: str
    cluster_wide: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedParts:
    """What of site.yaml on a node belongs to a hypervisor.

    Attributes:
        node: The node, by its file.
        interfaces: Whether the bridges and VLANs of the node do.
        cluster_wide: Whether the pools and the SDN of its cluster do.
    """

    node: str
    interfaces: bool
    cluster_wide: bool


def find_node_file(site: Site, hypervisor: str, said: str | None) -> str | None:
    """Return the file of `nodes/` that a file of `hypervisors/` means by what it says of its node."""
    return None if said is None else choose_node_file(_list_nodes(site), hypervisor, said)


def find_node_name(site: Site, hypervisor: LoadedFile[Any]) -> str | None:
    """Return what Proxmox calls the node of a file of `hypervisors/`; None for the file of a cluster."""
    said: str | None = getattr(hypervisor.model, "node", None)
    return None if said is None else call_node(_list_nodes(site), said)


def _list_nodes(site: Site) -> dict[str, str]:
    return {file: loaded.model.node or file for file, loaded in site.nodes.items()}


def find_owners(site: Site, node: str) -> SharedOwners:
    """Return who has what site.yaml makes on a node.

    Args:
        site: The site, in which no file of `hypervisors/` is broken.
        node: The node, by its file.
    """
    files = sorted(site.hypervisors.items())
    of_nodes = {name: file.model.node for name, file in files if hasattr(file.model, "node")}
    clusters = {name: file.model.api for name, file in files if not hasattr(file.model, "node")}
    own = [name for name, said in of_nodes.items() if find_node_file(site, name, said) == node]
    interfaces = node if node in own or not own else own[0]
    reached = [name for name, api in clusters.items() if find_node_file(site, name, api) == node]
    if not reached and len(clusters) == 1:
        reached = list(clusters)
    if not reached:
        named = {name: find_node_file(site, name, api) for name, api in clusters.items()}
        reached = [name for name, other in named.items() if other and _share_cluster(site, node, other)]
    return SharedOwners(interfaces=interfaces, cluster_wide=reached[0] if reached else interfaces)


def _share_cluster(site: Site, node: str, other: str) -> bool:
    """Return whether two nodes are known to be of one cluster: a token is one of a single cluster."""
    one, two = site.nodes.get(node), site.nodes.get(other)
    if one is None or two is None:
        return False
    tokens = [loaded.model.api_token or loaded.name for loaded in (one, two)]
    return tokens[0] == tokens[1] or one.model.api_endpoint == two.model.api_endpoint


def find_shared_parts(site: Site, hypervisor: str) -> tuple[SharedParts, ...]:
    """Return what of site.yaml belongs to a hypervisor, node by node."""
    found = []
    for node in sorted(site.nodes):
        owners = find_owners(site, node)
        part = SharedParts(
            node=node,
            interfaces=owners.interfaces == hypervisor,
            cluster_wide=owners.cluster_wide == hypervisor,
        )
        if part.interfaces or part.cluster_wide:
            found.append(part)
    return tuple(found)


def list_implied(site: Site) -> list[str]:
    """Return the hypervisors that have no file: nodes which no file of `hypervisors/` describes."""
    there = {*site.hypervisors, *site.broken["hypervisors"]}
    nodes = sorted({*site.nodes, *site.broken["nodes"]} - there)
    return [node for node in nodes if find_owners(site, node).interfaces == node]
