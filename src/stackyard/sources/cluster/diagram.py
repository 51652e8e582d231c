"""A cluster as a picture: its Proxmox nodes, and the nodes on each; a tree of text, Mermaid, or Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["draw_dot", "draw_mermaid", "draw_tree", "group_by_host"]

_METAL = "bare metal"


def group_by_host(cluster: Cluster) -> dict[str, list[ClusterNode]]:
    """Return the nodes by the Proxmox node of their VM, in the order of the file."""
    hosts: dict[str, list[ClusterNode]] = {}
    for node in cluster.nodes:
        hosts.setdefault(_METAL if node.vm is None else node.vm.proxmox_node, []).append(node)
    return hosts


def draw_tree(cluster: Cluster) -> list[str]:
    """Return the cluster, below it its hosts, and below each the nodes on it."""
    lines = [f"{cluster.name} ({cluster.network.api_addr})"]
    hosts = list(group_by_host(cluster).items())
    for number, (host, nodes) in enumerate(hosts, 1):
        is_last = number == len(hosts)
        lines.append(f"{'└── ' if is_last else '├── '}{host}")
        for place, node in enumerate(nodes, 1):
            branch = "└── " if place == len(nodes) else "├── "
            lines.append(f"{'    ' if is_last else '│   '}{branch}{_label(node)}")
    return lines


def draw_mermaid(cluster: Cluster) -> list[str]:
    """Return a flowchart of Mermaid."""
    lines = ["flowchart TD", f'    api["{cluster.name}: {cluster.network.api_addr}"]']
    for number, (host, nodes) in enumerate(group_by_host(cluster).items()):
        lines.append(f'    subgraph h{number}["{host}"]')
        lines += [f'        n{_number(cluster, node)}["{_label(node)}"]' for node in nodes]
        lines.append("    end")
    return lines + [f"    api --> n{_number(cluster, node)}" for node in cluster.controllers]


def draw_dot(cluster: Cluster) -> list[str]:
    """Return a graph of Graphviz."""
    lines = ["digraph cluster {", f'  "{cluster.name}" [label="{cluster.name}: {cluster.network.api_addr}"];']
    for number, (host, nodes) in enumerate(group_by_host(cluster).items()):
        lines.append(f'  subgraph cluster_{number} {{ label="{host}";')
        lines += [f'    "{node.name}" [label="{_label(node)}"];' for node in nodes]
        lines.append("  }")
    lines += [f'  "{cluster.name}" -> "{node.name}";' for node in cluster.controllers]
    return [*lines, "}"]


def _label(node: ClusterNode) -> str:
    return f"{node.name} ({node.role}, {node.address})"


def _number(cluster: Cluster, node: ClusterNode) -> int:
    return cluster.nodes.index(node)
