"""Removing a container: `DELETE /nodes/{node}/lxc/{vmid}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc import mountpoints
from pvelab.api.nodes.lxc.disks import free_volume
from pvelab.api.nodes.lxc.power import stop_container
from pvelab.faults.latency import Work
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.cluster.jobs import check_not_replicated, forget_guest
from pvelab.world.ha.config import forget_resource, is_configured

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["destroy_container"]


@route("DELETE /nodes/{node}/lxc/{vmid}")
def destroy_container(call: Call) -> Any:
    """Remove a container and its volumes in a task; a running one only with `force`."""
    world, node, vmid, params = call.world, call.node, call.vmid, call.params
    purge, force = bool(params.get("purge")), bool(params.get("force"))
    unreferenced = bool(params.get("destroy-unreferenced-disks"))
    _check_removable(world, node, vmid, purge=purge, force=force)

    async def work(task: Task) -> None:
        async with world.locks.guest("lxc", vmid):
            guest = _check_removable(world, node, vmid, purge=purge, force=force)
            if guest["status"] == "running":
                task.log(f"forced to stop CT {vmid} before destroying!")
                await task.spend(Work.STOP)
                with task.step():
                    stop_container(world, vmid)
            await task.spend(Work.DELETE)
            with task.step():
                _free_volumes(world, task, guest, unreferenced=unreferenced)
                remove_traces(world, vmid)
                if purge:
                    task.log(f"purging CT {vmid} from related configurations..")
                    _purge(world, task, vmid)
                world.guests.remove(vmid)

    return call.start_task("vzdestroy", vmid, work)


def remove_traces(world: World, vmid: int) -> None:
    """Remove what else the cluster knows of a container: its pool, its entries in ACLs, its firewall."""
    world.pools.remove_guest(vmid)
    world.store.delete("acl", f"/vms/{vmid}")
    world.store.delete("firewall", f"guest/{vmid}")
    world.store.delete("guest_secrets", str(vmid))


def _purge(world: World, task: Task, vmid: int) -> None:
    forget_guest(world.store, vmid)
    if is_configured(world.store, f"ct:{vmid}"):
        forget_resource(world.store, f"ct:{vmid}", purge=True)
        task.log(f"NOTE: removed CT {vmid} from HA resource configuration.")


def _check_removable(world: World, node: str, vmid: int, *, purge: bool, force: bool) -> Document:
    guest = world.guests.require("lxc", node, vmid)
    if guest["config"].get("protection"):
        raise PveError(f"can't remove CT {vmid} - protection mode enabled")
    world.guests.check_unlocked(guest)
    if not purge and is_configured(world.store, f"ct:{vmid}"):
        raise PveError(f"unable to remove CT {vmid} - used in HA resources and purge parameter not set.")
    if not purge:
        check_not_replicated(world.store, vmid)
    if guest["status"] == "running" and not force:
        raise PveError(f"unable to destroy CT {vmid} - container is running")
    return guest


def _free_volumes(world: World, task: Task, guest: Document, *, unreferenced: bool) -> None:
    vmid, node = int(guest["vmid"]), str(guest["node"])
    seen: set[str] = set()
    for config in (guest["config"], guest["pending"]):
        for _, point in mountpoints.each_volume(world.facts, config, unused=True):
            volid = str(point["volume"])
            if volid not in seen:
                seen.add(volid)
                free_volume(world, vmid, volid, node, task)
    for volume in world.volumes.of_guest(vmid, node) if unreferenced else ():
        free_volume(world, vmid, str(volume["volid"]), node, task)
