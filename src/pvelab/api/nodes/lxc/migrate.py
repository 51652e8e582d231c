"""Migrating a container to another node: `/nodes/{node}/lxc/{vmid}/migrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.migration import Migration
from pvelab.api.nodes.lxc.options import check_container
from pvelab.server.params.texts import split_list
from pvelab.server.problems import PveError, bad_parameter
from pvelab.server.routing import route
from pvelab.world.ha.config import is_managed, sid_of
from pvelab.world.ha.motion import motion_info
from pvelab.world.ha.requests import ask_to_migrate, is_managed_by_ha

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task

__all__ = ["migrate", "read_conditions"]

_SHUTDOWN_TIMEOUT_S = 180


@route("GET /nodes/{node}/lxc/{vmid}/migrate")
def read_conditions(call: Call) -> Any:
    """Return whether a container runs and where it could go."""
    world = call.world
    world.cluster.require_quorum()
    guest = world.guests.require("lxc", call.node, call.vmid)
    world.guests.check_unlocked(guest)
    sid = sid_of("lxc", call.vmid)
    together, blocking = motion_info(world, sid)
    others = [name for name in world.cluster.nodes() if name != call.node]
    answer = {
        "running": int(guest["status"] == "running"),
        "allowed-nodes": [name for name in others if name not in blocking],
        "not-allowed-nodes": {
            name: {"blocking-ha-resources": blocking[name]} for name in others if name in blocking
        },
    }
    return {**answer, "dependent-ha-resources": together} if is_managed(call.store, sid) else answer


@route("POST /nodes/{node}/lxc/{vmid}/migrate")
def migrate(call: Call) -> Any:
    """Move a container to another node in a task; a running one is restarted there."""
    world, params, target = call.world, call.params, str(call.params["target"])
    if target == call.node:
        raise bad_parameter("target", "target is local node.")
    world.cluster.require_quorum()
    world.cluster.require_member(target)
    guest = world.guests.require("lxc", call.node, call.vmid)
    if guest["status"] == "running" and not params.get("online") and not params.get("restart"):
        raise PveError("can't migrate running container without --online or --restart")
    storages, source, vmid = _storage_map(call, target), call.node, call.vmid
    if is_managed_by_ha(call, "lxc"):
        return ask_to_migrate(call, "lxc", target)

    async def work(task: Task) -> None:
        migration = Migration(
            world=world,
            task=task,
            vmid=vmid,
            source=source,
            target=target,
            storages=storages,
            restart=bool(params.get("restart")),
            timeout_s=params.get("timeout", _SHUTDOWN_TIMEOUT_S),
        )
        await migration.run()

    return call.start_task("vzmigrate", call.vmid, work)


def _storage_map(call: Call, target: str) -> dict[str, str]:
    text = call.params.get("target-storage")
    if text is None:
        return {}
    storages: dict[str, str] = {}
    for entry in split_list(text):
        source, colon, wanted = entry.partition(":")
        if entry == "1":
            continue
        storages[source if colon else ""] = wanted if colon else source
    if "1" not in split_list(text):
        check_container(call, "VM.Config.Disk")
    for wanted in storages.values():
        config = call.world.storages.require(wanted, target)
        call.check(f"/storage/{wanted}", "Datastore.AllocateSpace")
        if "rootdir" not in call.world.storages.content_types(config):
            raise PveError(f"storage '{wanted}' does not support CT rootdirs")
    return storages
