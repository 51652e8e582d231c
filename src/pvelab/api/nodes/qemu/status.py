"""What VMs there are and how they are: `/nodes/{node}/qemu` and `status/current`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.api.machine_versions import QEMU_VERSION
from pvelab.api.nodes.qemu.hotplug import has_agent
from pvelab.api.nodes.qemu.power import RUNNING_MACHINE
from pvelab.server.routing import route
from pvelab.world.guests.rows import guest_status, memory_bytes
from pvelab.world.ha.config import guest_status as ha_status

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["index_vm", "list_status", "list_vms", "read_current"]

_SUBDIRECTORIES = (
    *("config", "pending", "cloudinit", "status", "unlink", "vncproxy", "termproxy", "migrate", "resize"),
    *(
        "move",
        "rrd",
        "rrddata",
        "monitor",
        "agent",
        "snapshot",
        "spiceproxy",
        "sendkey",
        "firewall",
        "mtunnel",
    ),
    "remote_migrate",
)


@route("GET /nodes/{node}/qemu")
def list_vms(call: Call) -> Any:
    """List the VMs of a node that the caller may see, with what only QEMU knows if `full` asks for it."""
    world, full = call.world, bool(call.params.get("full"))
    if call.sees_all and not full:
        return world.rows.on_node(world, call.node, "qemu")
    seen = [
        guest
        for guest in world.guests.on_node(call.node, "qemu")
        if call.may(f"/vms/{guest['vmid']}", "VM.Audit")
    ]
    return [_full_status(world, guest) if full else world.rows.status(world, guest) for guest in seen]


@route("GET /nodes/{node}/qemu/{vmid}")
def index_vm(_call: Call) -> Any:
    """List what there is of a VM."""
    return [{"subdir": name} for name in _SUBDIRECTORIES]


@route("GET /nodes/{node}/qemu/{vmid}/status")
def list_status(_call: Call) -> Any:
    """List the commands on a VM's state."""
    return [
        {"subdir": name} for name in ("current", "start", "stop", "reset", "shutdown", "suspend", "reboot")
    ]


@route("GET /nodes/{node}/qemu/{vmid}/status/current")
def read_current(call: Call) -> Any:
    """Answer the state of a VM."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    config = guest["config"]
    status = _full_status(call.world, guest)
    status["ha"] = ha_status(call.store, f"vm:{call.vmid}")
    if has_agent(str(config.get("agent", ""))):
        status["agent"] = 1
    display = str(config.get("vga", ""))
    options = dict(part.partition("=")[::2] for part in display.split(",") if "=" in part)
    if "qxl" in display or options.get("type", display.partition(",")[0]).startswith("virtio"):
        status["spice"] = 1
    if "clipboard" in options:
        status["clipboard"] = options["clipboard"]
    return status


def _full_status(world: World, guest: Document) -> dict[str, Any]:
    status = guest_status(world, guest)
    status["qmpstatus"] = guest["run"].get("qmpstatus", guest["status"])
    if guest["status"] != "running":
        return status
    config, vmid = guest["config"], guest["vmid"]
    status |= {"running-machine": RUNNING_MACHINE, "running-qemu": QEMU_VERSION}
    if int(config.get("balloon", 1)):
        status["balloon"] = memory_bytes(config)
    networks = (key.removeprefix("net") for key in config if re.fullmatch(r"net\d+", key))
    status["nics"] = {f"tap{vmid}i{number}": {"netin": 0, "netout": 0} for number in networks}
    return status
