"""Consoles: tickets for the screens and terminals of nodes and guests.

A ticket is real: it is signed for its user, its console and its port, and `POST /access/vncticket` knows it.
The connection itself is not there, so the task that waits for it ends as it does when nobody connects.
"""

from __future__ import annotations

import secrets
import string
from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError
from stackyard.lab.routing import route

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document
    from stackyard.lab.tasks import Task

__all__ = [
    "container_screen",
    "container_spice",
    "container_terminal",
    "node_screen",
    "node_spice",
    "node_terminal",
    "vm_screen",
    "vm_spice",
    "vm_terminal",
]

_FIRST_PORT, _PORTS = 5900, 100
_SPICE_PORT = 61000
_WAITS_S = 10
_PASSWORD_LENGTH = 8
_SPICE_TITLES = {"qemu": "VM", "lxc": "CT"}


@route("POST /nodes/{node}/qemu/{vmid}/vncproxy")
def vm_screen(call: Call) -> Any:
    """Make a ticket for the screen of a VM."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if call.params.get("generate-password") and not call.params.get("websocket"):
        raise PveError("'generate-password' requires 'websocket'")
    if guest["status"] != "running":
        raise PveError(f"VM {call.vmid} not running")
    answer = _screen(call, f"/vms/{call.vmid}", "vncproxy", str(call.vmid))
    if call.params.get("generate-password"):
        letters = string.ascii_letters + string.digits
        answer["password"] = "".join(secrets.choice(letters) for _ in range(_PASSWORD_LENGTH))
    return answer


@route("POST /nodes/{node}/qemu/{vmid}/termproxy")
def vm_terminal(call: Call) -> Any:
    """Make a ticket for a serial terminal of a VM."""
    config = call.world.guests.require("qemu", call.node, call.vmid)["config"]
    serial = call.params.get("serial")
    if serial is not None and serial not in config:
        raise PveError(f"serial interface '{serial}' is not configured")
    if serial is None and not any(f"serial{number}" in config for number in range(4)):
        raise PveError("unable to find a serial interface")
    return _terminal(call, f"/vms/{call.vmid}", "vncproxy", str(call.vmid))


@route("POST /nodes/{node}/qemu/{vmid}/spiceproxy")
def vm_spice(call: Call) -> Any:
    """Make a ticket for the SPICE screen of a VM."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if guest["status"] != "running":
        raise PveError(f"VM {call.vmid} not running")
    if not str(guest["config"].get("vga", "")).startswith(("qxl", "virtio", "type=qxl", "type=virtio")):
        raise PveError("no spice port")
    return _spice(call, f"vm:{call.vmid}", _title(guest))


@route("POST /nodes/{node}/lxc/{vmid}/vncproxy")
def container_screen(call: Call) -> Any:
    """Make a ticket for the console of a container as a screen."""
    call.world.guests.require("lxc", call.node, call.vmid)
    return _screen(call, f"/vms/{call.vmid}", "vncproxy", str(call.vmid))


@route("POST /nodes/{node}/lxc/{vmid}/termproxy")
def container_terminal(call: Call) -> Any:
    """Make a ticket for the console of a container."""
    call.world.guests.require("lxc", call.node, call.vmid)
    return _terminal(call, f"/vms/{call.vmid}", "vncproxy", str(call.vmid))


@route("POST /nodes/{node}/lxc/{vmid}/spiceproxy")
def container_spice(call: Call) -> Any:
    """Make a ticket for the console of a container over SPICE."""
    guest = call.world.guests.require("lxc", call.node, call.vmid)
    return _spice(call, f"ct:{call.vmid}", _title(guest))


@route("POST /nodes/{node}/vncshell")
def node_screen(call: Call) -> Any:
    """Make a ticket for the shell of a node as a screen."""
    _check_command(call)
    return _screen(call, f"/nodes/{call.node}", "vncshell", "")


@route("POST /nodes/{node}/termproxy")
def node_terminal(call: Call) -> Any:
    """Make a ticket for the shell of a node."""
    _check_command(call)
    return _terminal(call, f"/nodes/{call.node}", "vncshell", "")


@route("POST /nodes/{node}/spiceshell")
def node_spice(call: Call) -> Any:
    """Make a ticket for the shell of a node over SPICE."""
    _check_command(call)
    return _spice(call, f"shell:{call.node}", f"Shell on '{call.node}'")


def _check_command(call: Call) -> None:
    """Refuse commands other than a login to everybody but root."""
    command = call.params.get("cmd", "login")
    if command != "login" and not call.is_root:
        raise PveError(f"user {call.authid} not allowed to run command '{command}'")


def _title(guest: Document) -> str:
    name = guest["config"].get("name") or guest["config"].get("hostname") or guest["vmid"]
    return f"{_SPICE_TITLES[str(guest['type'])]} {guest['vmid']} - {name}"


def _port(call: Call) -> int:
    """Return a port that no console waits at."""
    waiting = {
        document.get("console")
        for document in call.store.items("consoles").values()
        if call.world.tasks.is_running(str(document.get("upid", "")))
    }
    free = (port for port in range(_FIRST_PORT, _FIRST_PORT + _PORTS) if port not in waiting)
    port = next(free, None)
    if port is None:
        raise PveError("unable to find free port (5900-5999)")
    return port


def _terminal(call: Call, path: str, kind: str, ident: str) -> dict[str, Any]:
    port = _port(call)
    ticket = call.world.tickets.issue_console(call.authid, path, port)

    async def work(task: Task) -> None:
        await task.sleep(_WAITS_S)
        raise PveError("connection timed out")

    upid = call.start_task(kind, ident, work)
    call.store.put("consoles", f"{call.node}:{port}", {"console": port, "upid": upid})
    return {"user": call.authid, "ticket": ticket, "port": port, "upid": upid}


def _screen(call: Call, path: str, kind: str, ident: str) -> dict[str, Any]:
    served = call.store.get("certificates", "served") or {}
    return {**_terminal(call, path, kind, ident), "cert": served.get("pem", "")}


def _spice(call: Call, what: str, title: str) -> dict[str, Any]:
    node = call.node
    password = secrets.token_hex(20)
    address = call.params.get("proxy") or call.world.cluster.nodes()[node]["ip"]
    return {
        "type": "spice",
        "title": title,
        "host": f"pvespiceproxy:{int(call.now()):08X}:{what}:{node}::{secrets.token_hex(16)}",
        "proxy": f"http://{address}:3128",
        "tls-port": _SPICE_PORT,
        "host-subject": f"OU=PVE Cluster Node,O=Proxmox Virtual Environment,CN={node}",
        "ca": str((call.store.get("certificates", "served") or {}).get("pem", "")).replace("\n", "\\n"),
        "password": password,
        "toggle-fullscreen": "Shift+F11",
        "release-cursor": "Ctrl+Alt+R",
        "secure-attention": "Ctrl+Alt+Ins",
        "delete-this-file": 1,
    }
