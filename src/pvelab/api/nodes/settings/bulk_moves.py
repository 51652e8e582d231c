"""Suspending and migrating all guests of a node: `/nodes/{node}/suspendall` and `.../migrateall`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.migrate import migrate
from pvelab.api.nodes.qemu.migrate import migrate_vm
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter, not_permitted
from pvelab.server.routing import route

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.server.routing import Route
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task

__all__ = ["migrate_all"]


@route("POST /nodes/{node}/migrateall")
def migrate_all(call: Call) -> Any:
    """Migrate the guests of a node, or those of a list, each in a task of its own."""
    _check(call, "VM.Migrate")
    world, target = call.world, str(call.params["target"])
    if target == call.node:
        raise bad_parameter("target", "target is local node.")
    world.cluster.require_quorum()
    if target not in world.cluster.nodes():
        raise PveError(f"no such cluster node '{target}'")
    options = world.store.get("cluster", "options") or {}
    asked = call.params.get("max-workers") or call.params.get("maxworkers")
    if not asked and not options.get("max_workers"):
        raise PveError("either 'max-workers' parameter or max_workers in datacenter.cfg must be set!")

    async def work(task: Task) -> None:
        chosen = _select_guests(call)
        if not chosen:
            task.log("no virtual guests matched, nothing to do..")
            return
        started = 0
        for guest in chosen:
            running = guest["status"] == "running"
            params: dict[str, Any] = {"target": target}
            if guest["type"] == "qemu":
                task.log(f"Migrating VM {guest['vmid']}")
                params |= {"online": int(running)}
                if call.params.get("with-local-disks"):
                    params["with-local-disks"] = 1
            else:
                task.log(f"Migrating CT {guest['vmid']}")
                params |= {"restart": int(running)}
            bound = migrate_vm if guest["type"] == "qemu" else migrate
            started += await _run(call, task, bound, {**params, "vmid": guest["vmid"]})
        if not started:
            raise PveError("no migrations worker started...")
        task.log(f"All jobs finished, used {started} workers in total.")

    return call.start_task("migrateall", "", work)


def _check(call: Call, *privileges: str) -> None:
    """Refuse who may not do it to all guests, nor to each of a list."""
    if call.may("/", *privileges):
        return
    listed = split_list(call.params.get("vms", ""))
    if not listed:
        raise not_permitted(f"/, {' && '.join(privileges)}")
    for vmid in listed:
        call.check(f"/vms/{vmid}", privileges[0])


def _select_guests(call: Call) -> list[Document]:
    listed = split_list(call.params.get("vms", ""))
    return [
        guest
        for guest in call.world.guests.on_node(call.node)
        if (not listed or str(guest["vmid"]) in listed) and not guest["config"].get("template")
    ]


async def _run(call: Call, task: Task, bound: Route, params: dict[str, Any]) -> int:
    """Make the call for one guest and wait for its task; return how many were started."""
    own = dataclasses.replace(call, params={"node": call.node, **params})
    try:
        with task.step():
            upid = str(bound.handler(own))
    except PveError as err:
        task.log(err.text)
        return 0
    await call.world.tasks.wait(upid)
    return 1
