"""Making pending changes of a node's network real, or dropping them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import take_over
from pvelab.api.nodes.network import files
from pvelab.faults.latency import Work
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task, WorkFunction
    from pvelab.world.world import World

__all__ = ["reload_network", "reload_work", "revert_network"]

TASK = ("srvreload", "networking")


@route("PUT /nodes/{node}/network")
def reload_network(call: Call) -> Any:
    """Put the pending file in force and bring the interfaces to it, in a task."""
    return call.start_task(*TASK, reload_work(call.world, call.node))


@route("DELETE /nodes/{node}/network")
def revert_network(call: Call) -> Any:
    """Drop the pending changes."""
    files.revert(call.world, call.node)


def reload_work(world: World, node: str) -> WorkFunction:
    """Return the work of reloading a node's network, SDN included."""

    async def work(task: Task) -> None:
        # The file is in force whatever becomes of the reload, as on a node.
        with task.step():
            files.put_in_force(world, node)
        await task.spend(Work.RELOAD)
        with task.step():
            files.bring_up(world, node)
            take_over(world, node, task.log)

    return work
