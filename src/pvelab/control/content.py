"""`/_lab/reset`, `/_lab/status`: the content of the lab as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import MachineError
from pvelab.seeds import SeedError, load_seed, parse_seed, seed_names
from pvelab.server.control import ControlCall, control
from pvelab.server.problems import PveError

if TYPE_CHECKING:
    from pvelab.world.world import World

__all__ = ["list_seeds", "read_status", "reset_lab"]


@control("GET /status")
async def read_status(call: ControlCall) -> Any:
    """Tell what the lab holds and how it runs."""
    world = call.world
    return {
        "nodes": {
            name: "online" if world.cluster.is_online(name) else "offline" for name in world.cluster.nodes()
        },
        "quorate": world.cluster.is_quorate,
        "guests": len(world.guests.all()),
        "running": sum(1 for guest in world.guests.all().values() if guest["status"] == "running"),
        "tasks": sum(1 for task in world.tasks.newest_first() if not task.get("status")),
        "calls": world.journal.count,
        "faults": len(world.faults.rules()),
        "time": world.clock.now(),
        "speed": world.latency.speed.value,
        "inside": await _inside(world),
    }


@control("GET /seeds")
def list_seeds(_call: ControlCall) -> Any:
    """List the seeds that come with the lab."""
    return {"seeds": seed_names()}


@control("POST /reset")
async def reset_lab(call: ControlCall) -> Any:
    """Make the lab new: the seed that it was started with, or another (`seed`: a name or an object)."""
    given = call.params.get("seed")
    try:
        match given:
            case None:
                seed = None
            case str():
                if given not in seed_names():
                    raise PveError(f"there is no seed '{given}'", status=400)
                seed = load_seed(given)
            case _:
                seed = parse_seed(given)
        await call.lifecycle.reset(seed)
    except SeedError as err:
        details = "".join(f" {found.detail}" for found in err.diagnostics)
        raise PveError(f"{err.detail}{details}", status=400) from err
    return await read_status.handler(call)


async def _inside(world: World) -> str:
    """Say what guests are made of, or why they are not."""
    try:
        return str(await world.machines.kind())
    except MachineError as err:
        return err.detail
