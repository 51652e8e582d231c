"""The monitor of a VM's QEMU, and the helper for its state: `.../{vmid}/monitor`, `.../{vmid}/dbus-vmstate`.

The monitor answers what the lab knows of a VM; a command that QEMU has and the lab does not is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu import drives
from stackyard.lab.resources.qemu.power import is_paused, stop_guest
from stackyard.lab.resources.qemu.settings import QEMU_VERSION
from stackyard.lab.routing import route
from stackyard.lab.rows import cpu_count, memory_bytes

if TYPE_CHECKING:
    from stackyard.lab.call import Call
    from stackyard.lab.store import Document

__all__ = ["run_monitor", "switch_helper"]

_INFO = ("status", "version", "name", "uuid", "cpus", "memory_size_summary", "block", "network", "balloon")
_ACTIONS = ("stop", "cont", "system_reset", "system_powerdown", "quit")


@route("POST /nodes/{node}/qemu/{vmid}/monitor")
def run_monitor(call: Call) -> Any:
    """Run a command of QEMU's monitor and answer what it prints."""
    words = str(call.params["command"]).split()
    if not words:
        raise PveError(f"unexpected command '{call.params['command']}'")
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if words[0] in _ACTIONS:
        call.check("/", "Sys.Modify")
    elif words[0] not in ("info", "help") and not call.is_root:
        text = f"command '{words[0]}' non-existent or not assigned a required permission yet"
        raise PveError(f"{text}, limiting to root user")
    if guest["status"] != "running":
        return f"ERROR: VM {call.vmid} not running\n"
    if words[0] in _ACTIONS:
        _act(call, guest, words[0])
        return ""
    if words[0] == "help":
        return "".join(f"info {name}\n" for name in _INFO) + "".join(f"{name}\n" for name in _ACTIONS)
    if words[0] == "info" and len(words) > 1 and words[1] in _INFO:
        return "".join(f"{line}\r\n" for line in _info(call, guest, words[1]))
    return f"unknown command: '{' '.join(words)}' (the lab's monitor knows those of 'help')\r\n"


def _act(call: Call, guest: Document, name: str) -> None:
    world, run = call.world, guest["run"]
    if name in ("quit", "system_powerdown"):
        stop_guest(world, call.vmid)
    elif name == "system_reset":
        world.guests.update(guest, run={**run, "booting_since": world.clock.now()})
    else:
        world.guests.update(guest, run={**run, "qmpstatus": "paused" if name == "stop" else "running"})


def _info(call: Call, guest: Document, name: str) -> list[str]:
    config = guest["config"]
    match name:
        case "status":
            return [f"VM status: {'paused' if is_paused(guest) else 'running'}"]
        case "version":
            return [f"{QEMU_VERSION}pve-qemu-kvm_{QEMU_VERSION}-4"]
        case "name":
            return [f"{config.get('name', f'vm{call.vmid}')},debug-threads=on"]
        case "uuid":
            return [str(config.get("smbios1", "")).removeprefix("uuid=").partition(",")[0]]
        case "cpus":
            first = [f"{'*' if not number else ' '} CPU #{number}:" for number in range(cpu_count(guest))]
            return [f"{line} thread_id={2000 + number}" for number, line in enumerate(first)]
        case "memory_size_summary":
            return [f"base memory: {memory_bytes(config)}"]
        case "balloon":
            return [f"balloon: actual={memory_bytes(config) // 2**20}"]
        case "network":
            return [f"{key}: {config[key]}" for key in sorted(config) if key.startswith("net")]
        case _:
            facts, keys = call.world.facts, drives.drive_keys(config)
            found = {key: drives.parse_drive(facts, key, str(config[key])) for key in keys}
            return [f"drive-{key}: {drive['file']}" for key, drive in found.items()]


@route("POST /nodes/{node}/qemu/{vmid}/dbus-vmstate")
def switch_helper(call: Call) -> Any:
    """Start or stop the helper that takes more of a VM's state along in a migration."""
    guest = call.world.guests.require("qemu", call.node, call.vmid)
    if guest["status"] != "running":
        raise PveError(f"VM {call.vmid} not running")
    run = {key: value for key, value in guest["run"].items() if key != "dbus_vmstate"}
    if call.params["action"] == "start":
        run["dbus_vmstate"] = 1
    call.world.guests.update(guest, run=run)
