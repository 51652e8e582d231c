"""Figures over time: `rrddata` of nodes, storages and guests.

Nothing is recorded. A series is computed from what the lab knows (size, memory, since when it runs) and from
its clock: the same question at the same lab time has the same answer, and points before a guest was started
are those of a stopped one.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.server.routing import route
from pvelab.world.guests.rows import boot_disk_size, cpu_count, memory_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pvelab.server.call import Call
    from pvelab.world.store import Document

__all__ = ["guest_data", "node_data", "storage_data"]

# The distance of the points and how many there are.
_FRAMES = {
    "hour": (60, 60),
    "day": (60, 1440),
    "week": (1800, 336),
    "month": (1800, 1440),
    "year": (21600, 1440),
    "decade": (604800, 570),
}
_DAY_S = 86400
_PRESSURES = (
    "pressurecpusome",
    "pressureiosome",
    "pressureiofull",
    "pressurememorysome",
    "pressurememoryfull",
)

Point = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noise:
    """A wave of a day with ripples, between 0 and 1, of something that has a name."""

    name: str

    def at(self, when: int, key: str = "") -> float:
        phase = int.from_bytes(hashlib.sha256(f"{self.name}{key}".encode()).digest()[:4], "big") / 2**32
        daily = 0.5 + 0.35 * math.sin(2 * math.pi * (when / _DAY_S + phase))
        ripple = 0.15 * math.sin(2 * math.pi * (when / 1800 + phase * 7))
        return min(1.0, max(0.0, daily + ripple))


@route("GET /nodes/{node}/rrddata")
def node_data(call: Call) -> Any:
    """Answer the figures of a node over time."""
    return _series(call, _node_point(call))


@route("GET /nodes/{node}/storage/{storage}/rrddata")
def storage_data(call: Call) -> Any:
    """Answer how full a storage was over time."""
    return _series(call, _storage_point(call))


@route("GET /nodes/{node}/qemu/{vmid}/rrddata", "GET /nodes/{node}/lxc/{vmid}/rrddata")
def guest_data(call: Call) -> Any:
    """Answer the figures of a guest over time."""
    return _series(call, _guest_point(call))


def _series(call: Call, point: Callable[[int], Point]) -> list[dict[str, Any]]:
    step, count = _FRAMES[str(call.params["timeframe"])]
    last = call.now() // step * step
    return [{"time": when, **point(when)} for when in range(last - step * count, last, step)]


def _node_point(call: Call) -> Callable[[int], Point]:
    node = call.world.cluster.nodes()[call.node]
    noise, memory, root = _Noise(name=call.node), int(node["memory"]), int(node["rootfs"])
    started, cpus = int(node["started"]), int(node["cpus"])

    def point(when: int) -> Point:
        if when < started - _DAY_S * 30:
            return {}
        busy = 0.02 + 0.1 * noise.at(when, "cpu")
        used = int(memory * (0.06 + 0.04 * noise.at(when, "mem")))
        return {
            "maxcpu": cpus,
            "cpu": busy,
            "iowait": 0.01 * noise.at(when, "io"),
            "loadavg": busy * cpus,
            "memtotal": memory,
            "memused": used,
            "memavailable": memory - used,
            "arcsize": 0,
            "swaptotal": 8 * 2**30,
            "swapused": 0,
            "roottotal": root,
            "rootused": root // 20,
            "netin": 20000 * noise.at(when, "in"),
            "netout": 15000 * noise.at(when, "out"),
            **dict.fromkeys(_PRESSURES, 0.0),
        }

    return point


def _storage_point(call: Call) -> Callable[[int], Point]:
    storage = str(call.params["storage"])
    call.world.storages.require(storage, call.node)
    status = call.world.storages.status(storage, call.node)
    return lambda _when: {"total": status["total"], "used": status["used"]}


def _guest_point(call: Call) -> Callable[[int], Point]:
    guest = call.world.guests.get(call.vmid)
    kinds = ("qemu", "lxc")
    if guest is None or guest["node"] != call.node or guest["type"] not in kinds:
        raise PveError(
            f"RRD error: opening '/var/lib/rrdcached/db/pve-vm-9.0/{call.vmid}': No such file or directory"
        )
    noise, cpus, memory = _Noise(name=f"guest{call.vmid}"), cpu_count(guest), memory_bytes(guest["config"])
    disk, since = boot_disk_size(guest), _since(guest)

    def point(when: int) -> Point:
        base: Point = {"maxcpu": cpus, "maxmem": memory, "maxdisk": disk, "disk": 0}
        if since is None or when < since:
            return base
        used = memory * (0.25 + 0.1 * noise.at(when, "mem"))
        return base | {
            "cpu": 0.02 + 0.2 * noise.at(when, "cpu"),
            "mem": used,
            "memhost": used * 1.05,
            "netin": 3000 * noise.at(when, "in"),
            "netout": 2000 * noise.at(when, "out"),
            "diskread": 5000 * noise.at(when, "read"),
            "diskwrite": 8000 * noise.at(when, "write"),
            **dict.fromkeys(_PRESSURES, 0.0),
        }

    return point


def _since(guest: Document) -> int | None:
    return int(guest["started"]) if guest["status"] == "running" and guest["started"] else None
