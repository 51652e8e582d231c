"""What VMs there are and how they are: `/nodes/{node}/qemu` and `status/current`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.params.properties import parse_boolean
from stackyard.lab.resources.qemu.create import QEMU_VERSION
from stackyard.lab.routing import route
from stackyard.lab.rows import guest_status

if TYPE_CHECKING:
    from stackyard.lab.call import Call

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
    """List the VMs of a node that the caller may see."""
    return [
        guest_status(call.world, guest)
        for guest in call.world.guests.on_node(call.node, "qemu")
        if call.may(f"/vms/{guest['vmid']}", "VM.Audit")
    ]


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
    running = guest["status"] == "running"
    status = guest_status(call.world, guest)
    status |= {"qmpstatus": guest["run"].get("qmpstatus", guest["status"]), "ha": {"managed": 0}}
    if running:
        status |= {"running-machine": "pc-i440fx-10.1+pve0", "running-qemu": QEMU_VERSION}
    if _has_agent(str(guest["config"].get("agent", ""))):
        status["agent"] = 1
    if "qxl" in str(guest["config"].get("vga", "")):
        status["spice"] = 1
    return status


def _has_agent(text: str) -> bool:
    first = text.partition(",")[0].removeprefix("enabled=")
    return parse_boolean(first) == "1"
