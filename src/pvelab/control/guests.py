"""`/_lab/guests`, `/_lab/nodes`: where guests and nodes can be reached, and who can log in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.control import ControlCall, control
from pvelab.server.problems import PveError
from pvelab.world.guests import addresses

if TYPE_CHECKING:
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["add_owner_key", "list_guests", "list_nodes"]

_SSH_PORT = 22
_MORE_PORTS = (8006,)
_TALOS_PORT = 50000
_KUBERNETES_PORT = 6443
_KEY = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\n]*)?")


@control("GET /guests")
async def list_guests(call: ControlCall) -> Any:
    """List guests, or the one of a name or number (`name`): addresses, ports, users, host keys."""
    world = call.world
    wanted = call.params.get("name")
    found = [guest for guest in world.guests.all().values() if not guest["config"].get("template")]
    if wanted is not None:
        found = [guest for guest in found if wanted in _names(guest)]
        if not found:
            raise PveError(f"there is no guest '{wanted}'", status=404)
    guests = [await _row(world, guest) for guest in sorted(found, key=lambda one: int(one["vmid"]))]
    return {"kind": str(await world.machines.kind()), "guests": guests}


@control("GET /nodes")
def list_nodes(call: ControlCall) -> Any:
    """List nodes: status, SSH port, users, host key."""
    world = call.world
    rows = []
    for name in world.cluster.nodes():
        is_online = world.cluster.is_online(name)
        port = world.nest.ssh_ports.get(name) if is_online else None
        rows.append(
            {
                "name": name,
                "status": "running" if is_online else "offline",
                "users": ["root"],
                "host": None if port is None else world.machines.forwards.host,
                "port": port,
                "host_key": world.nest.host_key,
                "takes_owner_key": True,
            }
        )
    return {"nodes": rows}


@control("POST /owner-keys")
def add_owner_key(call: ControlCall) -> Any:
    """Let who has a key (`key`: its public half) log in to every node as root, and to every guest."""
    key = str(call.params.get("key", "")).strip()
    if not _KEY.fullmatch(key):
        raise PveError("'key' must be a public key, as a line of authorized_keys has it", status=400)
    call.world.owner_keys.add(key)
    return {"keys": len(call.world.owner_keys)}


async def _row(world: World, guest: Document) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": _full_name(guest),
        "vmid": int(guest["vmid"]),
        "node": guest["node"],
        "type": guest["type"],
        "status": guest["status"],
        "addresses": [
            one.address
            for interface in addresses.addresses_of(world, guest)
            for one in interface.addresses
            if not one.is_link_local
        ],
        "users": [],
        "host": None,
        "port": None,
        "ports": {},
        "host_key": None,
        "takes_owner_key": False,
    }
    talos = _describe_talos(world, guest)
    if talos is not None:
        row["talos"] = talos
    if not row["addresses"]:
        return row
    if talos is not None:
        return {**row, **await _describe_talos_ports(world, int(guest["vmid"]))}
    return {**row, **await _describe_access(world, guest)}


def _describe_talos(world: World, guest: Document) -> dict[str, Any] | None:
    """Return what a guest does that runs Talos: its stage, why it does not come up, where its API is."""
    machine = world.machines.talos(int(guest["vmid"]))
    if machine is None:
        return None
    api = None if machine.address is None else "{}:{}".format(*machine.address)
    return {
        "stage": machine.stage,
        "problem": machine.state.get("problem"),
        "version": machine.version,
        "api": api,
    }


async def _describe_talos_ports(world: World, vmid: int) -> dict[str, Any]:
    """Return the ports that lead to the APIs of a Talos machine; there is no SSH."""
    forwards, machine = world.machines.forwards, world.machines.talos(vmid)
    wanted = [_TALOS_PORT]
    if machine is not None and await machine.endpoint(_KUBERNETES_PORT) is not None:
        wanted.append(_KUBERNETES_PORT)
    ports = {str(port): found for port in wanted if (found := forwards.port(vmid, port)) is not None}
    return {"host": forwards.host, "ports": ports} if ports else {}


async def _describe_access(world: World, guest: Document) -> dict[str, Any]:
    from pvelab.ssh.guests import public_host_key  # lazy: the SSH side takes long to load
    from pvelab.ssh.logins import list_users  # lazy: as above

    forwards = world.machines.forwards
    vmid = int(guest["vmid"])
    machine = await world.machines.of(guest)
    ports = {_SSH_PORT: forwards.port(vmid, _SSH_PORT)} if world.nest.ssh_ports else {}
    for port in _MORE_PORTS:
        if await machine.endpoint(port) is not None:
            ports[port] = forwards.port(vmid, port)
    open_ones = {str(port): found for port, found in ports.items() if found is not None}
    return {
        "users": list(await list_users(world, guest, machine)),
        "host": forwards.host if open_ones else None,
        "port": open_ones.get(str(_SSH_PORT)),
        "ports": open_ones,
        "host_key": public_host_key(world, guest),
        # Where the SSH server is the lab's own, and not one that runs inside.
        "takes_owner_key": await machine.endpoint(_SSH_PORT) is None,
    }


def _full_name(guest: Document) -> str:
    key, prefix = ("name", "VM") if guest["type"] == "qemu" else ("hostname", "CT")
    return str(guest["config"].get(key) or f"{prefix}{guest['vmid']}")


def _names(guest: Document) -> tuple[str, ...]:
    """Return what a guest can be called: its number, its name, and the first part of that."""
    full = _full_name(guest)
    return str(guest["vmid"]), full, full.partition(".")[0]
