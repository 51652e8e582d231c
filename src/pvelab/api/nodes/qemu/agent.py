"""The guest agent of a VM: `/nodes/{node}/qemu/{vmid}/agent`.

It answers once the guest has had the time to boot, with what the lab knows of the guest. What it does inside
of the guest (programs, files) is in `agent_inside`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.qemu import drives
from pvelab.api.nodes.qemu.hotplug import has_agent
from pvelab.api.nodes.qemu.power import is_paused, stop_guest
from pvelab.api.nodes.qemu.userdata import hostname_of
from pvelab.machines.qemu.power import ask_agent
from pvelab.server.problems import PveError
from pvelab.server.routing import Route, route
from pvelab.world.guests import addresses
from pvelab.world.guests.rows import cpu_count, memory_bytes
from pvelab.world.storage.volume_features import owner_of

if TYPE_CHECKING:
    from pvelab.server.call import Call
    from pvelab.world.guests.addresses import Interface
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["ROUTES", "list_commands", "refuse_suspending", "require_agent", "run_command"]

AGENT_VERSION = "7.2.11"

_BLOCK = 128 * 2**20
_STATISTICS = tuple(
    f"{way}-{what}" for way in ("rx", "tx") for what in ("bytes", "packets", "errs", "dropped")
)

Command = Callable[["World", "Document"], Any]


def require_agent(world: World, guest: Document) -> None:
    """Refuse to ask an agent that does not answer.

    Raises:
        PveError: None is configured, the VM does not run, or the guest has not booted yet; in this order.
    """
    agent = guest["config"].get("agent")
    if agent is None:
        raise PveError("No QEMU guest agent configured")
    if guest["status"] != "running":
        raise PveError(f"VM {guest['vmid']} is not running")
    answers = has_agent(str(agent)) and not is_paused(guest) and addresses.has_booted(world, guest)
    # Talos has one only if its image does.
    answers = answers and bool(guest["run"].get("talos", {}).get("agent", True))
    if not answers or world.faults.silences(int(guest["vmid"]), str(guest["node"])):
        raise PveError("QEMU guest agent is not running")


def _ping(_world: World, _guest: Document) -> Any:
    return {}


def _info(_world: World, _guest: Document) -> Any:
    commands = [
        {"name": f"guest-{name}", "enabled": True, "success-response": name not in _NO_RESPONSE}
        for name in sorted((*_COMMANDS, *_INSIDE, *_SUSPENDING))
    ]
    return {"version": AGENT_VERSION, "supported_commands": commands}


def _interfaces(world: World, guest: Document) -> Any:
    found = (addresses.LOOPBACK, *addresses.addresses_of(world, guest))
    return [_interface(interface) for interface in found]


def _interface(interface: Interface) -> dict[str, Any]:
    shown = [
        {
            "ip-address": one.address,
            "ip-address-type": "ipv4" if one.family == "inet" else "ipv6",
            "prefix": one.prefix,
        }
        for one in interface.addresses
    ]
    return {
        "name": interface.name,
        "hardware-address": interface.mac.lower(),
        "ip-addresses": shown,
        "statistics": dict.fromkeys(_STATISTICS, 0),
    }


def _is_windows(guest: Document) -> bool:
    return str(guest["config"].get("ostype", "")).startswith(("win", "wxp", "w2k", "wvista"))


def _osinfo(_world: World, guest: Document) -> Any:
    if _is_windows(guest):
        return {
            "id": "mswindows",
            "name": "Microsoft Windows",
            "pretty-name": "Windows Server 2022 Datacenter",
            "version": "Microsoft Windows Server 2022",
            "version-id": "2022",
            "kernel-release": "20348",
            "kernel-version": "10.0",
            "machine": "x86_64",
            "variant": "server",
            "variant-id": "server",
        }
    return {
        "id": "debian",
        "name": "Debian GNU/Linux",
        "pretty-name": "Debian GNU/Linux 12 (bookworm)",
        "version": "12 (bookworm)",
        "version-id": "12",
        "kernel-release": "6.1.0-28-cloud-amd64",
        "kernel-version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)",
        "machine": "x86_64",
    }


def _host_name(_world: World, guest: Document) -> Any:
    return {"host-name": hostname_of(int(guest["vmid"]), guest["config"])[0]}


def _time(world: World, _guest: Document) -> Any:
    return int(world.clock.now() * 1_000_000_000)


def _timezone(_world: World, _guest: Document) -> Any:
    return {"zone": "UTC", "offset": 0}


def _users(_world: World, _guest: Document) -> Any:
    # No one is logged in at the console of a guest without a screen.
    return []


def _vcpus(_world: World, guest: Document) -> Any:
    return [
        {"logical-id": number, "online": True, "can-offline": number > 0}
        for number in range(cpu_count(guest))
    ]


def _memory_blocks(_world: World, guest: Document) -> Any:
    count = -(-memory_bytes(guest["config"]) // _BLOCK)
    return [{"phys-index": number, "online": True, "can-offline": False} for number in range(count)]


def _memory_block_info(_world: World, _guest: Document) -> Any:
    return {"size": _BLOCK}


def _filesystems(world: World, guest: Document) -> Any:
    """Return the root file system, on the first disk of the VM's own."""
    for key in drives.drive_keys(guest["config"]):
        drive = drives.parse_drive(world.facts, key, str(guest["config"][key]))
        volid = str(drive["file"])
        volume = world.volumes.find(volid, str(guest["node"])) if ":" in volid else None
        if drives.is_cdrom(drive) or volume is None or owner_of(volid) != guest["vmid"]:
            continue
        device = "vda1" if key.startswith("virtio") else "sda1"
        disk = {
            "dev": f"/dev/{device[:-1]}",
            "bus-type": key.rstrip("0123456789"),
            "bus": 0,
            "target": 0,
            "unit": 0,
        }
        return [
            {
                "name": device,
                "mountpoint": "/",
                "type": "ext4",
                "total-bytes": int(volume["size"]),
                "used-bytes": 0,
                "disk": [disk],
            }
        ]
    return []


def _freeze_status(_world: World, guest: Document) -> Any:
    return "frozen" if guest["run"].get("frozen") else "thawed"


def _freeze(world: World, guest: Document) -> Any:
    already = bool(guest["run"].get("frozen"))
    world.guests.update(guest, run={**guest["run"], "frozen": 1})
    return 0 if already else len(_filesystems(world, guest))


def _thaw(world: World, guest: Document) -> Any:
    frozen = bool(guest["run"].get("frozen"))
    run = {key: value for key, value in guest["run"].items() if key != "frozen"}
    world.guests.update(guest, run=run)
    return len(_filesystems(world, guest)) if frozen else 0


def _trim(world: World, guest: Document) -> Any:
    paths = [
        {"path": found["mountpoint"], "trimmed": 0, "minimum": 0} for found in _filesystems(world, guest)
    ]
    return {"paths": paths}


def _shutdown(world: World, guest: Document) -> Any:
    stop_guest(world, int(guest["vmid"]))


def refuse_suspending(_world: World, _guest: Document) -> Any:
    """Refuse to sleep, as agents of guests without the tools for it do.

    Raises:
        PveError: Always.
    """
    raise PveError("Agent error: the requested suspend mode is not supported by the guest")


_COMMANDS: dict[str, tuple[str, Command]] = {
    "ping": ("POST", _ping),
    "info": ("GET", _info),
    "network-get-interfaces": ("GET", _interfaces),
    "get-osinfo": ("GET", _osinfo),
    "get-host-name": ("GET", _host_name),
    "get-time": ("GET", _time),
    "get-timezone": ("GET", _timezone),
    "get-users": ("GET", _users),
    "get-vcpus": ("GET", _vcpus),
    "get-fsinfo": ("GET", _filesystems),
    "get-memory-blocks": ("GET", _memory_blocks),
    "get-memory-block-info": ("GET", _memory_block_info),
    "fsfreeze-status": ("POST", _freeze_status),
    "fsfreeze-freeze": ("POST", _freeze),
    "fsfreeze-thaw": ("POST", _thaw),
    "fstrim": ("POST", _trim),
    "shutdown": ("POST", _shutdown),
}
_SUSPENDING = ("suspend-disk", "suspend-hybrid", "suspend-ram")
_NO_RESPONSE = frozenset(("shutdown", *_SUSPENDING))
# What the agent knows beside the commands here; the API puts several of them together.
_INSIDE = (
    *("exec", "exec-status", "file-close", "file-flush", "file-open", "file-read", "file-seek", "file-write"),
    "set-user-password",
)
_BY_API = ("exec", "exec-status", "file-read", "file-write", "set-user-password", *_SUSPENDING)
_DECLARED_AT = "/nodes/{node}/qemu/{vmid}/agent"


@route(f"GET {_DECLARED_AT}")
def list_commands(_call: Call) -> Any:
    """List the commands of the agent."""
    return [{"name": name} for name in sorted((*_COMMANDS, *_BY_API))]


@route(f"POST {_DECLARED_AT}")
async def run_command(call: Call) -> Any:
    """Run a command that is named by a parameter, as old clients do."""
    name = call.params["command"]
    return await _answer(call, name, _COMMANDS[name][1] if name in _COMMANDS else refuse_suspending)


async def _answer(call: Call, name: str, command: Command) -> Any:
    world, guest = call.world, call.world.guests.require("qemu", call.node, call.vmid)
    require_agent(world, guest)
    if world.machines.is_real:
        return {"result": await ask_agent(world, guest, name)}
    with call.transaction():
        return {"result": command(world, guest)}


def _bind_command(name: str) -> Route:
    verb, command = _COMMANDS[name]

    async def handler(call: Call) -> Any:
        return await _answer(call, name, command)

    return route(f"{verb} {_DECLARED_AT}/{name}")(handler)


ROUTES = tuple(_bind_command(name) for name in _COMMANDS)
