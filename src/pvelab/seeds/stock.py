"""What every new lab holds: nodes, storages, a bridge with an address, root@pam with password and token."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.network.files import bring_up
from pvelab.api.nodes.network.read import is_physical, read_interfaces
from pvelab.seeds import STOCK_STORAGES, SeedMachine
from pvelab.seeds.load import plant_guests, plant_storages
from pvelab.world.access.directory import ROOT
from pvelab.world.access.tickets import hash_password
from pvelab.world.bridges import INTERFACES
from pvelab.world.generate import new_uuid
from pvelab.world.storage.physical import declare_disks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pvelab.seeds import Seed
    from pvelab.world.world import World

__all__ = ["Credentials", "credentials", "is_seeded", "plant"]

GIB = 2**30

TOKEN_NAME = "lab"  # noqa: S105 - the name of the token, not its value
BRIDGE = "vmbr0"

_CARDS = ("eno1", "eno2", "eno3", "eno4")
# As the installer writes it: one bridge on the first card.
_INTERFACES = """\
auto lo
iface lo inet loopback

iface eno1 inet manual

iface eno2 inet manual

iface eno3 inet manual

iface eno4 inet manual

auto vmbr0
iface vmbr0 inet static
\taddress {address}/16
\tgateway 10.31.0.1
\tbridge-ports eno1
\tbridge-stp off
\tbridge-fd 0

source /etc/network/interfaces.d/*
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How to log in to a lab."""

    username: str
    password: str
    api_token: str


def is_seeded(world: World) -> bool:
    """Return whether a lab has been given its first content."""
    return bool(world.cluster.nodes())


def plant(
    world: World, seed: Seed, nodes: Sequence[str], password: str | None = None, *, token: str | None = None
) -> None:
    """Fill an empty lab with all of a seed but its files and calls, in the running transaction.

    Args:
        world: The lab.
        seed: What it holds.
        nodes: The names of the nodes; the first one answers calls that name none.
        password: The password of root@pam; a random one if None.
        token: The secret of its API token; a random one if None.

    Raises:
        PveError: Something of the seed cannot be in a lab.
    """
    put, names = world.store.put, tuple(nodes)
    put("cluster", "state", {"name": seed.cluster, **({"ha_groups": 1} if seed.ha_groups else {})})
    put("secrets", "authkey", {"hex": secrets.token_hex(32)})
    machines = {seed.placed(node, names): machine for node, machine in seed.machines.items()}
    for number, node in enumerate(names, start=1):
        _plant_node(world, node, number, machines.get(node, SeedMachine()))
    if seed.storages is None:
        for storage, config in STOCK_STORAGES.items():
            put("storages", storage, {"storage": storage, **config})
    plant_storages(world, seed, names)
    plant_guests(world, seed, names)
    _plant_root(world, password or secrets.token_urlsafe(12), token or new_uuid())


def credentials(world: World) -> Credentials:
    """Return how to log in as root@pam."""
    kept = world.store.get("secrets", "root") or {}
    authid = f"{ROOT}!{TOKEN_NAME}"
    token = world.store.get("token_secrets", authid) or {}
    return Credentials(
        username=ROOT, password=kept.get("password", ""), api_token=f"{authid}={token.get('value', '')}"
    )


def _plant_node(world: World, node: str, number: int, machine: SeedMachine) -> None:
    put = world.store.put
    address = machine.ip or f"10.31.0.{10 + number}"
    put(
        "nodes",
        node,
        {
            "name": node,
            "nodeid": number,
            "ip": address,
            "online": 1,
            "cpus": machine.cpus or 16,
            "memory": machine.memory or 64 * GIB,
            "rootfs": machine.rootfs or 96 * GIB,
            "started": int(world.clock.now()),
        },
    )
    put("capacities", f"{node}|local", {"total": 400 * GIB})
    put("capacities", f"{node}|local-lvm", {"total": 2048 * GIB})
    _plant_interfaces(world, node, machine.interfaces, address)
    if machine.disks is not None:
        declare_disks(world.store, node, machine.disks)


def _plant_interfaces(world: World, node: str, text: str | None, address: str) -> None:
    links = list(_CARDS)
    if text is not None:
        links = [name for name in read_interfaces(text).by_name if is_physical(name)]
    file = {"text": text or _INTERFACES.format(address=address), "time": world.clock.now(), "links": links}
    live: dict[str, Any] = {
        "lo": {"type": "loopback", "vlan_aware": 0, "mtu": 65536},
        "eno1": {"type": "eth", "vlan_aware": 0, "mtu": 1500},
        BRIDGE: {"type": "bridge", "vlan_aware": 0, "mtu": 1500},
    }
    world.store.put(INTERFACES, node, {**file, "live": live if text is None else {}})
    if text is not None:
        bring_up(world, node, at_boot=True)


def _plant_root(world: World, password: str, token: str) -> None:
    put = world.store.put
    put("realms", "pam", {"realm": "pam", "type": "pam", "comment": "Linux PAM standard authentication"})
    put("realms", "pve", {"realm": "pve", "type": "pve", "comment": "Proxmox VE authentication server"})
    tokens = {TOKEN_NAME: {"privsep": 0, "expire": 0}}
    put("users", ROOT, {"userid": ROOT, "enable": 1, "expire": 0, "groups": [], "tokens": tokens})
    put("shadow", ROOT, {"hash": hash_password(password)})
    put("secrets", "root", {"password": password})
    put("token_secrets", f"{ROOT}!{TOKEN_NAME}", {"value": token})
