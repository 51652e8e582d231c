"""Looking at the nodes of a cluster: which answer in maintenance mode, and which have their install disk."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.talos import (
    TalosCertificateError,
    TalosClient,
    TalosEndpoint,
    TalosError,
    TalosRefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["NodeDisk", "NodeReport", "NodeStage", "has_disk", "look_at_node", "read_disk", "verify_nodes"]

_TIMEOUT_S = 10.0
_LINKS = "/dev/disk/"


class NodeStage(enum.StrEnum):
    """What a node is, as seen from outside without a certificate."""

    MAINTENANCE = "maintenance"
    CONFIGURED = "configured"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDisk:
    """A disk of a node: its path, serial number and size."""

    path: str
    serial: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """What was seen of a node.

    Attributes:
        node: The node.
        stage: What it is.
        disks: Its disks, in maintenance mode.
        has_install_disk: Whether the disk that Talos is to be installed on is one of them.
        reason: Why it is not in maintenance mode, and what to do about it.
    """

    node: ClusterNode
    stage: NodeStage
    disks: tuple[NodeDisk, ...] = ()
    has_install_disk: bool = False
    reason: str = ""

    @property
    def is_disk_checked(self) -> bool:
        """Whether the install disk was looked for: a link is one that only the node itself can follow."""
        return self.stage is NodeStage.MAINTENANCE and not self.node.disk.startswith(_LINKS)

    @property
    def is_ready(self) -> bool:
        """Whether the node can get its configuration."""
        return self.stage is NodeStage.MAINTENANCE and self.has_install_disk


async def verify_nodes(cluster: Cluster) -> tuple[NodeReport, ...]:
    """Return what is seen of each node of a cluster, in their order."""
    return tuple(await asyncio.gather(*(look_at_node(node) for node in cluster.nodes)))


async def look_at_node(node: ClusterNode) -> NodeReport:
    """Return what is seen of a node now."""
    endpoint = TalosEndpoint(host=str(node.address))
    try:
        async with TalosClient(endpoint, timeout_s=_TIMEOUT_S) as client:
            disks = tuple(read_disk(one) for one in await client.list_disks())
    except TalosCertificateError as err:
        return NodeReport(node=node, stage=NodeStage.CONFIGURED, reason=f"{err.detail} {err.remedy}")
    except TalosRefusedError as err:
        is_secured = err.status in ("UNAUTHENTICATED", "PERMISSION_DENIED")
        stage = NodeStage.CONFIGURED if is_secured else NodeStage.UNREACHABLE
        return NodeReport(node=node, stage=stage, reason=f"{err.detail} {err.remedy}")
    except TalosError as err:
        return NodeReport(node=node, stage=NodeStage.UNREACHABLE, reason=f"{err.detail} {err.remedy}")
    return NodeReport(
        node=node,
        stage=NodeStage.MAINTENANCE,
        disks=disks,
        has_install_disk=has_disk(node.disk, disks),
    )


def read_disk(disk: Any) -> NodeDisk:
    """Return a disk from what a node says of it."""
    return NodeDisk(path=disk.device_name, serial=disk.serial, size_bytes=disk.size)


def has_disk(wanted: str, disks: Iterable[NodeDisk]) -> bool:
    """Return whether a disk is there: by its path, else by its serial number."""
    if wanted.startswith(_LINKS):
        # Nothing says that it is missing; `is_disk_checked` says that nobody looked.
        return True
    if wanted.startswith("/"):
        return any(disk.path == wanted for disk in disks)
    return any(disk.serial == wanted for disk in disks)
