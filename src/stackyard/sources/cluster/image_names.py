"""What the images of a cluster are called: in its state, and on the storages of Proxmox VE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.sources.cluster.names import DEFAULT_NAME

if TYPE_CHECKING:
    from stackyard.sources.cluster.model import Cluster, ClusterNode, TalosImage

__all__ = ["name_file", "name_image", "name_image_file"]


def name_image(cluster: Cluster, node: ClusterNode) -> str:
    """Return the key of a node's image in the map of images; nodes of one host with the same image share it.

    On the usual Proxmox node it is the key that states of the original have; others add the Proxmox node.
    """
    key = f"{node.image.schematic_id}-{'true' if node.image.is_secureboot else 'false'}"
    if node.image.arch != "amd64":
        key += f"-{node.image.arch}"
    other = _find_other_host(cluster, node)
    return f"{key}-{other}" if other else key


def name_file(cluster: Cluster, node: ClusterNode) -> str:
    """Return the name of a node's image on a storage.

    On the usual Proxmox node, a cluster that has no name of its own uses that of the original. Others add
    theirs: clusters that share a storage must not share a file, which the first to be destroyed would delete.
    For the same reason other Proxmox nodes add theirs: their storage may be the same.
    """
    name = name_image_file(cluster, node.image)
    other = _find_other_host(cluster, node)
    if other is None:
        return name
    stem, _, suffix = name.rpartition(".")
    # No cluster has this mark in its name.
    return f"{stem}_{other}.{suffix}"


def name_image_file(cluster: Cluster, image: TalosImage) -> str:
    """Return the name of an image on the usual Proxmox node; images are pinned by it, whatever their node."""
    if cluster.name == DEFAULT_NAME:
        return image.file_name
    stem, _, suffix = image.file_name.rpartition(".")
    return f"{stem}-{cluster.name}.{suffix}"


def _find_other_host(cluster: Cluster, node: ClusterNode) -> str | None:
    if node.vm is None or cluster.proxmox is None or node.vm.proxmox_node == cluster.proxmox.node:
        return None
    return node.vm.proxmox_node
