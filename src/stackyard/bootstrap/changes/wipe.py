"""Taking Talos' configuration and data from a machine, so that it waits in maintenance mode again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.bootstrap.talos.wait import BootTimeoutError, wait_for
from stackyard.clients.talos import TalosError, TalosUnreachableError
from stackyard.talosapi.messages import pb

if TYPE_CHECKING:
    from stackyard.bootstrap.step import Report
    from stackyard.bootstrap.talos.access import TalosAccess
    from stackyard.sources.cluster.model import ClusterNode

__all__ = ["wipe_node"]

_RESET = "/machine.MachineService/Reset"
# The configuration with its secrets, and everything that Kubernetes and etcd keep. Talos itself stays.
_PARTITIONS = ("STATE", "EPHEMERAL")


async def wipe_node(node: ClusterNode, access: TalosAccess, report: Report, *, timeout_s: float) -> str:
    """Reset a node as far as it can be reached; return why it is not known to be wiped, empty if it is.

    It leaves nothing first: the whole cluster ends. A node without a configuration has nothing to wipe.
    """
    request = pb.ResetRequest(
        reboot=True,
        system_partitions_to_wipe=[pb.ResetPartitionSpec(label=label, wipe=True) for label in _PARTITIONS],
    )
    if not await _look(node, access):
        return ""
    try:
        async with access.open(node) as client:
            # A node that is away is not waited for.
            await client.read_version()
            try:
                await client.call(_RESET, request)
            except TalosUnreachableError:
                # The answer was lost. What the node becomes shows whether it took it.
                report(f"{node.name} to answer again")
    except TalosError as err:
        return err.detail

    async def is_wiped() -> str:
        return await _look(node, access)

    try:
        await wait_for(is_wiped, what=f"{node.name} to be wiped", timeout_s=timeout_s, report=report)
    except BootTimeoutError as err:
        return err.detail
    return ""


async def _look(node: ClusterNode, access: TalosAccess) -> str:
    """Return why a node is not in maintenance mode, empty if it is."""
    try:
        async with access.open_maintenance(node) as client:
            await client.list_disks()
    except TalosError as err:
        return err.detail
    return ""
