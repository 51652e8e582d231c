"""On which Proxmox node each node of the cluster is, where the input names several.

A node stays where the generated files have it: to move it would be to replace its VM. New nodes are taken in
the order of the file. Each goes to the host with the fewest of its role, then with the fewest nodes at all,
then to the first in the list.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.sources.cluster.fields import NodeFields
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["spread_nodes"]


def spread_nodes(read: ClusterInput) -> list[str | None]:
    """Return the host of each node that names none; None for one that names its own, or without a list."""
    hosts = list(dict.fromkeys(read.fields.proxmox_nodes or ()))
    if not hosts:
        return [None] * len(read.nodes)
    kept = {name: host for name, host in read.known_hosts.items() if host in hosts}
    of_role: Counter[tuple[str, bool]] = Counter()
    of_all: Counter[str] = Counter()

    def count(host: str, node: NodeFields) -> str:
        of_role[host, bool(node.controller)] += 1
        of_all[host] += 1
        return host

    def choose(node: NodeFields) -> str:
        role = bool(node.controller)
        return min(hosts, key=lambda host: (of_role[host, role], of_all[host], hosts.index(host)))

    placed = {
        index: count(kept[node.name], node)
        for index, node in enumerate(read.nodes)
        if node.name in kept and not _said(node)
    }
    for index, node in enumerate(read.nodes):
        if index not in placed:
            placed[index] = count(_said(node) or choose(node), node)
    return [None if _said(node) else placed[index] for index, node in enumerate(read.nodes)]


def _said(node: NodeFields) -> str | None:
    return node.proxmox_node or node.target_node
