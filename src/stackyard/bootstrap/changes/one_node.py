"""What every change of a node that runs needs: its boot, its configuration, and a quorum without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.changes.health import UnhealthyError
from stackyard.bootstrap.talos.health import list_node_problems
from stackyard.talosapi.messages import pb
from stackyard.talosconfig.documents import parse_config

if TYPE_CHECKING:
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.clients.talos import TalosClient
    from stackyard.sources.cluster.model import Cluster, ClusterNode
    from stackyard.talosconfig.documents import MachineConfig

__all__ = ["in_order", "read_boot_id", "read_running_config", "require_quorum_without"]

_READ = "/machine.MachineService/Read"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CONFIG = ("MachineConfigs.config.talos.dev", "config", "v1alpha1")


def in_order(cluster: Cluster) -> tuple[ClusterNode, ...]:
    """Return the nodes in the order in which they are changed: control planes first, one after the other."""
    return (*cluster.controllers, *cluster.workers)


async def read_boot_id(client: TalosClient) -> str:
    """Return what the kernel calls this boot of a node: another one after a reboot.

    Raises:
        TalosError: The node does not answer.
    """
    request = pb.ReadRequest(path=_BOOT_ID)
    data = b"".join([part.bytes async for part in client.stream(_READ, request)])
    return data.decode(errors="replace").strip()


async def read_running_config(client: TalosClient) -> MachineConfig:
    """Return the configuration that a node runs with; it has secrets.

    Raises:
        TalosError: The node does not answer.
        MachineConfigError: What it answers is no configuration.
    """
    return parse_config(str(await client.read_resource(*_CONFIG)), "the running configuration")


async def require_quorum_without(cluster: Cluster, access: TalosAccess, node: ClusterNode) -> None:
    """Refuse to take a control plane node away while the others would have no quorum.

    The only one may go: nothing else keeps etcd up meanwhile. Of two, the other one must be well.

    Raises:
        UnhealthyError: Too few of the others are healthy.
    """
    if not node.is_controller:
        return
    others = [one for one in cluster.controllers if one is not node]
    count = len(cluster.controllers)
    needed = min(count - 1, count // 2 + 1)
    reasons = []
    for other in others:
        problems = await list_node_problems(other, access, needs_kubernetes=False)
        reasons += [f"{other.name}: {', '.join(problems)}"] if problems else []
    if len(others) - len(reasons) < needed:
        raise UnhealthyError(
            f"Without {node.name}, etcd would lose its quorum: {'; '.join(reasons)}. "
            f"{node.name} was not changed."
        )
