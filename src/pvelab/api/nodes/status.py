"""Nodes: `/nodes` and `/nodes/{node}/status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pvelab.server.facts import PVE_VERSION
from pvelab.server.routing import route
from pvelab.world.ha import config

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.world import World

__all__ = ["SWAP", "list_nodes", "node_row", "read_status"]

SWAP = 8 * 2**30

_KERNEL = "6.17.2-1-pve"
_HOST_MEMORY_SHARE = 16


@route("GET /nodes")
def list_nodes(call: Call) -> Any:
    """List the nodes; figures only to who may audit them."""
    return [
        {
            **node_row(call.world, node, figures=call.may(f"/nodes/{node}", "Sys.Audit")),
            "ssl_fingerprint": call.world.cluster.nodes()[node].get("fingerprint", ""),
        }
        for node in call.world.cluster.nodes()
    ]


@route("GET /nodes/{node}/status")
def read_status(call: Call) -> Any:
    """Answer what a node is made of and how busy it is."""
    world, node = call.world, call.node
    document = world.cluster.require_node(node)
    memory, used = int(document["memory"]), used_memory(world, node)
    root, root_used = int(document["rootfs"]), int(document["rootfs"]) // 20
    return {
        "uptime": uptime(world, node),
        "idle": 0,
        "wait": 0,
        "cpu": 0.01,
        "loadavg": ["0.10", "0.12", "0.09"],
        "pveversion": f"pve-manager/{PVE_VERSION}/1ab2c3d4e5f60718",
        "kversion": f"Linux {_KERNEL} #1 SMP PREEMPT_DYNAMIC",
        "current-kernel": {
            "sysname": "Linux",
            "release": _KERNEL,
            "version": "#1 SMP PREEMPT_DYNAMIC",
            "machine": "x86_64",
        },
        "boot-info": {"mode": "efi", "secureboot": 0},
        "cpuinfo": {
            "model": "Lab Processor",
            "cpus": int(document["cpus"]),
            "cores": int(document["cpus"]) // 2,
            "sockets": 1,
            "mhz": "2900.000",
            "hvm": "1",
            "user_hz": 100,
            "flags": "fpu vme de pse tsc msr vmx aes avx avx2 lm",
        },
        "memory": {"total": memory, "used": used, "free": memory - used, "available": memory - used},
        "swap": {"total": SWAP, "used": 0, "free": SWAP},
        "rootfs": {"total": root, "used": root_used, "free": root - root_used, "avail": root - root_used},
        "ksm": {"shared": 0},
    }


def node_row(world: World, node: str, *, figures: bool) -> dict[str, Any]:
    """Return what lists tell of a node."""
    document = world.cluster.nodes()[node]
    online = world.cluster.is_online(node)
    row: dict[str, Any] = {
        "id": f"node/{node}",
        "node": node,
        "type": "node",
        "status": "online" if online else "offline",
    }
    state = config.status(world.store).get("node_status", {}).get(node)
    if state is not None:
        row["hastate"] = state
    if not figures:
        return row
    row |= {
        "level": "",
        "maxcpu": int(document["cpus"]),
        "maxmem": int(document["memory"]),
        "maxdisk": int(document["rootfs"]),
    }
    if online:
        row |= {
            "uptime": uptime(world, node),
            "cpu": 0.01,
            "mem": used_memory(world, node),
            "disk": int(document["rootfs"]) // 20,
        }
    return row


def uptime(world: World, node: str) -> int:
    """Return for how many seconds a node is up."""
    return max(0, int(world.clock.now()) - int(world.cluster.nodes()[node]["started"]))


def used_memory(world: World, node: str) -> int:
    """Return how much memory a node has in use."""
    return int(world.cluster.nodes()[node]["memory"]) // _HOST_MEMORY_SHARE
