"""Snapshots of containers: `/nodes/{node}/lxc/{vmid}/snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.power import start_container, stop_container
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.guests import snapshots
from pvelab.world.guests.snapshots import Snapshot, SnapshotRules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.server.call import Call
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = [
    "FAMILY",
    "create",
    "delete",
    "index_snapshot",
    "list_all",
    "read_config",
    "rollback",
    "update_config",
]

_RESERVED = frozenset(("current", "vzdump"))


def _volumes(world: World, config: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: str(point["volume"]) for key, point in mountpoints.each_volume(world.facts, config)}


FAMILY = SnapshotRules(kind="lxc", volumes=_volumes, stop=stop_container)


@route("GET /nodes/{node}/lxc/{vmid}/snapshot")
def list_all(call: Call) -> Any:
    """List the snapshots of a container and its present state."""
    return snapshots.list_snapshots(call.world.guests.require("lxc", call.node, call.vmid))


@route("POST /nodes/{node}/lxc/{vmid}/snapshot")
def create(call: Call) -> Any:
    """Make a snapshot in a task."""
    wanted = _snapshot(call)
    if wanted.name in _RESERVED:
        raise PveError(f"unable to use snapshot name '{wanted.name}' (reserved name)")
    world, description = call.world, call.params.get("description")
    world.guests.require("lxc", call.node, call.vmid)

    async def work(task: Task) -> None:
        await snapshots.take(world, task, wanted, description=description)

    return call.start_task("vzsnapshot", call.vmid, work)


@route("GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}")
def index_snapshot(_call: Call) -> Any:
    """List what there is of a snapshot."""
    return [{"cmd": "rollback"}, {"cmd": "config"}]


@route("DELETE /nodes/{node}/lxc/{vmid}/snapshot/{snapname}")
def delete(call: Call) -> Any:
    """Remove a snapshot in a task."""
    world, wanted, force = call.world, _snapshot(call), bool(call.params.get("force"))
    world.guests.require("lxc", call.node, call.vmid)

    async def work(task: Task) -> None:
        await snapshots.delete(world, task, wanted, force=force)

    return call.start_task("vzdelsnapshot", call.vmid, work)


@route("POST /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback")
def rollback(call: Call) -> Any:
    """Go back to a snapshot in a task; a running container is stopped for it."""
    world, wanted, start = call.world, _snapshot(call), bool(call.params.get("start"))
    world.guests.require("lxc", call.node, call.vmid)

    async def work(task: Task) -> None:
        await snapshots.roll_back(world, task, wanted)
        if start:
            await start_container(world, task, wanted.vmid, wanted.node)

    return call.start_task("vzrollback", call.vmid, work)


@route("GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config")
def read_config(call: Call) -> Any:
    """Answer the configuration that a snapshot holds."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    flat = snapshots.flat_config(snapshots.require(guest, call.params["snapname"]))
    return {key: value for key, value in flat.items() if key != "lxc"}


@route("PUT /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config")
async def update_config(call: Call) -> Any:
    """Change the description of a snapshot."""
    async with call.guest_lock("lxc", call.vmid):
        with call.transaction():
            snapshots.describe(call.world, _snapshot(call), call.params.get("description", ""))
    return None


def _snapshot(call: Call) -> Snapshot:
    return Snapshot(family=FAMILY, node=call.node, vmid=call.vmid, name=call.params["snapname"])
