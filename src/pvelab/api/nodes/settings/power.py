"""Turning a node off and on: `POST /nodes/{node}/status` and `/nodes/{node}/wakeonlan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.network import files
from pvelab.api.nodes.settings.bulk import start_guests, stop_guests
from pvelab.api.nodes.settings.config import load_config
from pvelab.faults.latency import Work
from pvelab.server.params import properties
from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.access.directory import ROOT
from pvelab.world.ha.config import is_managed, sid_of

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.tasks import Task, WorkFunction
    from pvelab.world.world import World

__all__ = ["switch_node", "wake_node"]

_GONE = "No route to host"
_MODES = {"freeze": "restart", "failover": "shutdown", "migrate": "maintenance"}


@route("POST /nodes/{node}/status")
def switch_node(call: Call) -> Any:
    """Shut a node down with all its guests, or reboot it; it answers meanwhile as long as it is up."""
    world, node = call.world, call.node
    reboots = call.params["command"] == "reboot"

    async def work(task: Task) -> None:
        # What the node does on its way down, no matter who sent it there.
        await _leave_ha(world, task, node, reboots=reboots)
        await stop_guests(world, task, node, managed=True)
        await task.spend(Work.SHUTDOWN)
        with task.step():
            world.store.put("nodes", node, {**world.cluster.nodes()[node], "online": 0, "unreachable": _GONE})
        if reboots:
            await task.spend(Work.BOOT)
            await _boot(world, task, node)

    world.tasks.start(node, "stopall", "", authid=ROOT, work=work)


@route("POST /nodes/{node}/wakeonlan")
def wake_node(call: Call) -> Any:
    """Send a packet that boots a node which was shut down; answer the MAC address in it."""
    world, node = call.world, call.params["node"]
    local = world.cluster.local()
    if node in ("localhost", local):
        raise PveError(f"'{node}' is local node, cannot wake my self!")
    if node not in world.cluster.nodes():
        raise PveError(f"no such cluster node '{node}'")
    config = load_config(call, node)
    if "wakeonlan" not in config:
        raise PveError(f"No wake on LAN MAC address defined for '{node}'!")
    schema = world.facts.schema("PUT /nodes/{node}/config", "wakeonlan")["format"]
    if not world.cluster.is_online(node):
        world.tasks.start(node, "startall", "", authid=ROOT, work=_make_wake_work(world, node))
    return properties.parse(schema, str(config["wakeonlan"]))["mac"]


async def _leave_ha(world: World, task: Task, node: str, *, reboots: bool) -> None:
    """Tell HA what becomes of its guests while the node is away, as the cluster's policy says."""
    options = (world.store.get("cluster", "options") or {}).get("ha") or {}
    policy = str(options.get("shutdown_policy", "conditional"))
    mode = _MODES.get(policy, "restart" if reboots else "shutdown")
    with task.step():
        world.store.put("nodes", node, {**world.cluster.nodes()[node], "ha_mode": mode})
    if mode == "maintenance":
        await world.ha.wait_until(lambda: not _has_managed(world, node))


def _has_managed(world: World, node: str) -> bool:
    return any(
        guest["status"] == "running" and is_managed(world.store, sid_of(str(guest["type"]), guest["vmid"]))
        for guest in world.guests.on_node(node)
    )


def _make_wake_work(world: World, node: str) -> WorkFunction:
    async def work(task: Task) -> None:
        await task.spend(Work.BOOT)
        await _bring_online(world, task, node)
        await start_guests(world, task, node)

    return work


async def _boot(world: World, task: Task, node: str) -> None:
    async def work(started: Task) -> None:
        await start_guests(world, started, node)

    await _bring_online(world, task, node)
    with task.step():
        world.tasks.start(node, "startall", "", authid=ROOT, work=work)


async def _bring_online(world: World, task: Task, node: str) -> None:
    """Let a node answer again; the network is that of its files, services all run."""
    with task.step():
        world.store.delete("services", node)
        files.put_in_force(world, node)
    if world.cluster.run_boot_units is not None:
        await world.cluster.run_boot_units(node)
    with task.step():
        document = {**world.cluster.nodes()[node], "online": 1, "started": int(world.clock.now())}
        for gone in ("unreachable", "ha_mode", "cut_off"):
            document.pop(gone, None)
        world.store.put("nodes", node, document)
        files.bring_up(world, node, at_boot=True)
