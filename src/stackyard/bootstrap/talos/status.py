"""What every node of a cluster says of itself now."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.talos import TalosError

if TYPE_CHECKING:
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import Cluster, ClusterNode

__all__ = ["NodeStatus", "read_status"]

_SERVICES = "/machine.MachineService/ServiceList"
_MAINTENANCE, _UNREACHABLE, _RUNNING = "maintenance", "unreachable", "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """What a node says.

    Attributes:
        node: The node.
        stage: `running`, `maintenance` or `unreachable`.
        version: The version of Talos that it runs.
        unhealthy: Its services that do not run or are not healthy, each with what it says.
        reason: Why nothing is known of it.
    """

    node: ClusterNode
    stage: str
    version: str = ""
    unhealthy: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_healthy(self) -> bool:
        """Whether it runs, and all of its services do."""
        return self.stage == _RUNNING and not self.unhealthy


async def read_status(cluster: Cluster, access: TalosAccess) -> tuple[NodeStatus, ...]:
    """Return what every node says, in the order of the file."""
    return tuple(await asyncio.gather(*(_ask(node, access) for node in cluster.nodes)))


async def _ask(node: ClusterNode, access: TalosAccess) -> NodeStatus:
    try:
        async with access.open(node) as client:
            version = await client.read_version()
            answer = await client.call(_SERVICES)
    except TalosError as err:
        reason = err.detail
    else:
        services = [one for message in answer.messages for one in message.services]
        unhealthy = tuple(
            f"{one.id}: {one.state}" + (f", {one.health.last_message}" if one.health.last_message else "")
            for one in services
            if one.state not in ("Running", "Finished", "Skipped")
            or not (one.health.healthy or one.health.unknown)
        )
        return NodeStatus(node=node, stage=_RUNNING, version=version, unhealthy=unhealthy)
    try:
        async with access.open_maintenance(node) as client:
            await client.list_disks()
    except TalosError:
        return NodeStatus(node=node, stage=_UNREACHABLE, reason=reason)
    return NodeStatus(node=node, stage=_MAINTENANCE, reason="it has no configuration yet")
