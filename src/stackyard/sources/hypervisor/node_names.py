"""Which node a file of `hypervisors/` means: it says what Proxmox calls it, or its file in `nodes/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["call_node", "choose_node_file", "list_node_files"]


def list_node_files(nodes: Mapping[str, str], said: str) -> list[str]:
    """Return the files of `nodes/` that may be meant; several where clusters have a node of the same name.

    Args:
        nodes: What Proxmox calls each node, by its file.
        said: What a file of `hypervisors/` says.
    """
    same = [file for file, called in nodes.items() if called == said]
    return same or [file for file in nodes if file == said]


def choose_node_file(nodes: Mapping[str, str], hypervisor: str, said: str) -> str | None:
    """Return the file of `nodes/` that is meant; None where there is none.

    Where two clusters have a node of the same name, the file that is called like the node is meant.

    Args:
        nodes: What Proxmox calls each node, by its file.
        hypervisor: The name of the file of `hypervisors/`.
        said: What that file says.
    """
    found = list_node_files(nodes, said)
    return hypervisor if hypervisor in found else next(iter(found), None)


def call_node(nodes: Mapping[str, str], said: str) -> str:
    """Return what Proxmox calls a node."""
    return next((nodes[file] for file in list_node_files(nodes, said)), said)
