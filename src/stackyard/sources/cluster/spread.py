"""On which Proxmox node each node of the cluster is, where the input names several.

Nodes are taken in the order of the file. Each goes to the host with the fewest of its role, then with the
fewest nodes at all, then to the first in the list: a node that is added at the end moves no other.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.sources.cluster.input import ClusterInput

__all__ = ["spread_nodes"]


def spread_nodes(read: ClusterInput) -> list[str | None]:
    """Return the host of each node that names none; None for one that names its own, or without a list."""
    hosts = list(dict.fromkeys(read.fields.proxmox_nodes or ()))
    if not hosts:
        return [None] * len(read.nodes)
    of_role: Counter[tuple[str, bool]] = Counter()
    of_all: Counter[str] = Counter()
    chosen: list[str | None] = []
    for node in read.nodes:
        said, role = node.proxmox_node or node.target_node, bool(node.controller)
        host = said or min(hosts, key=lambda name: (of_role[name, role], of_all[name], hosts.index(name)))
        of_role[host, role] += 1
        of_all[host] += 1
        chosen.append(None if said else host)
    return chosen
