"""Putting the written SDN configuration in force, or taking it back: `/cluster/sdn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.cluster.sdn.applied import commit, read_applied, roll_back
from pvelab.api.cluster.sdn.locks import change_sdn, drop_lock
from pvelab.api.nodes.network.reload import TASK, reload_work
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["apply_sdn", "index_sdn", "roll_back_sdn"]

_FOLDERS = ("vnets", "zones", "controllers", "ipams", "dns", "fabrics", "prefix-lists", "route-maps")


@route("GET /cluster/sdn")
def index_sdn(_call: Call) -> Any:
    """List what there is of SDN."""
    return [{"id": name} for name in _FOLDERS]


@route("PUT /cluster/sdn")
def apply_sdn(call: Call) -> Any:
    """Put the configuration in force at once, and let all nodes reload their networks in a task."""
    world = call.world
    had_routing = _has_routing(call)
    with change_sdn(call, "could not commit SDN config"):
        commit(call.store)
        _release(call)
    routing = int(had_routing or _has_routing(call))

    async def work(task: Task) -> None:
        world.cluster.require_quorum()
        for node in world.cluster.nodes():
            await _reload(world, task, node, routing)

    return call.start_task("reloadnetworkall", "", work)


@route("POST /cluster/sdn/rollback")
def roll_back_sdn(call: Call) -> Any:
    """Forget what has been written since the last apply."""
    with change_sdn(call, "could not rollback SDN configuration"):
        roll_back(call.store)
        _release(call)


def _release(call: Call) -> None:
    # The declared default of `release-lock` is 1, but Proxmox does not look at defaults: it must be sent.
    if call.params.get("lock-token") and call.params.get("release-lock"):
        drop_lock(call)


def _has_routing(call: Call) -> bool:
    return any(read_applied(call.store, part) for part in ("controllers", "fabrics"))


async def _reload(world: World, task: Task, node: str, routing: int) -> None:
    """Reload one node, as root@pam for every user, and wait for it; one that is down is left behind."""
    task.log(f"{node}: reloading network config")
    if not world.cluster.is_online(node):
        task.log(
            f"command 'pvesh set /nodes/{node}/network --regenerate-frr {routing}' failed: exit code 255"
        )
        return
    with task.step():
        upid = world.tasks.start(node, *TASK, authid=ROOT, work=reload_work(world, node))
    await world.tasks.wait(upid)
