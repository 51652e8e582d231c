"""A node as a whole: what there is under it, its report, the counters of its guests' network devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stackyard.lab.facts import PVE_VERSION
from stackyard.lab.guest_text import config_lines
from stackyard.lab.physical import Physical
from stackyard.lab.routing import route
from stackyard.lab.rows import guest_name

if TYPE_CHECKING:
    from stackyard.lab.call import Call

__all__ = ["index_node", "list_counters", "print_report"]

_CHILDREN = (
    *("aplinfo", "apt", "capabilities", "ceph", "certificates", "config", "disks", "dns", "firewall"),
    *("hardware", "hosts", "journal", "lxc", "migrateall", "netstat", "network", "qemu"),
    *("query-oci-repo-tags", "query-url-metadata", "replication", "report", "rrd", "rrddata", "scan", "sdn"),
    *("services", "spiceshell", "startall", "status", "stopall", "storage", "subscription", "suspendall"),
    *("syslog", "tasks", "termproxy", "time", "version", "vncshell", "vzdump", "wakeonlan"),
)
_BYTES_A_SECOND = {"in": 1500, "out": 900}


@route("GET /nodes/{node}")
def index_node(_call: Call) -> Any:
    """List what there is of a node."""
    return [{"name": name} for name in _CHILDREN]


@route("GET /nodes/{node}/netstat")
def list_counters(call: Call) -> Any:
    """List how much went through the network devices of running guests since their start."""
    rows = []
    for guest in call.world.guests.on_node(call.node):
        if guest["status"] != "running":
            continue
        seconds = max(0, int(call.world.clock.now() - (guest["started"] or 0)))
        devices = sorted(key for key in guest["config"] if re.fullmatch(r"net\d+", key))
        for key in devices:
            counted = {way: str(seconds * rate) for way, rate in _BYTES_A_SECOND.items()}
            rows.append({"vmid": str(guest["vmid"]), "dev": key, **counted})
    return rows


@route("GET /nodes/{node}/report")
def print_report(call: Call) -> Any:
    """Print what support asks for: versions, storages, disks, guests with their configurations."""
    world, node = call.world, call.node
    parts = [
        ("general system info", _general(call)),
        ("info about storage", [_storage(call, name) for name in world.storages.all()]),
        (
            "info about disks",
            [f"{path} {disk['size']}" for path, disk in Physical(call.store, node).disks().items()],
        ),
        ("info about virtual guests", _guests(call)),
        (
            "info about the cluster",
            [f"{name} online={int(world.cluster.is_online(name))}" for name in world.cluster.nodes()],
        ),
    ]
    return "".join(
        f"\n==== {title} ====\n\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts
    )


def _general(call: Call) -> list[str]:
    return [
        "# hostname",
        call.node,
        "# pveversion --verbose",
        "proxmox-ve: 9.0.0 (running kernel: 6.17.2-1-pve)",
        f"pve-manager: {PVE_VERSION}",
    ]


def _storage(call: Call, name: str) -> str:
    status = call.world.storages.status(name, call.node)
    state = "active" if status["active"] else "disabled"
    return f"{name} {status['type']} {state} {status['total']} {status['used']} {status['avail']}"


def _guests(call: Call) -> list[str]:
    lines = []
    for guest in call.world.guests.on_node(call.node):
        lines += [f"# {guest['type']} {guest['vmid']} {guest_name(guest)} {guest['status']}"]
        hidden = {key: "**********" for key in ("cipassword",) if key in guest["config"]}
        lines += [*config_lines({**guest["config"], **hidden}), ""]
    return lines
