"""How long it takes from the start of a guest to a login in it, beside a login to the node that it runs on.

The guest boots with cloud-init that makes its user; where no sandbox works here, guests answer a fixed set of
commands, and the figure says so.
"""

from __future__ import annotations

import asyncio
import json
import time

import asyncssh
from tests.support.lab import LabClient, lab_client
from tests.support.lab_inside import make_guest
from tests.support.lab_ssh import OWN, ssh_to

from bench.figure import Figure
from pvelab.machines.bubblewrap import find_bubblewrap
from pvelab.machines.machine import Kind

__all__ = ["measure"]

ROUNDS = 5


def measure() -> list[Figure]:
    """Return the one figure."""
    return [asyncio.run(_login())]


async def _login() -> Figure:
    found = await find_bubblewrap()
    kind = Kind.RECORDED if isinstance(found, str) else Kind.SANDBOX
    key = asyncssh.generate_private_key("ssh-ed25519")
    guests, nodes = [], []
    async with lab_client(guests=kind, ssh_port=0) as api:
        for vmid in range(100, 100 + ROUNDS):
            guests.append(await _to_guest(api, vmid, key))
            nodes.append(await _to_node(api))
    return Figure(
        name="from the start of a guest to a login in it",
        measured_s=min(guests),
        floor_name="a login to the node",
        floor_s=min(nodes),
        aim_ratio=5.0,
        allowance_s=1.0,
        note=f"guests: {kind}",
    )


async def _to_guest(api: LabClient, vmid: int, key: asyncssh.SSHKey) -> float:
    public = key.export_public_key().decode()
    began_s = time.perf_counter()
    await make_guest(api, vmid, ciuser="ops", sshkeys=public)
    reply = await api.raw("GET", "/guests", base="/_lab")
    (listed,) = [one for one in json.loads(reply.body)["guests"] if one["vmid"] == vmid]
    options = {**OWN, "username": "ops", "client_keys": [key]}
    async with asyncssh.connect(listed["host"], listed["port"], **options) as connection:
        await connection.run("hostname", check=True)
    return time.perf_counter() - began_s


async def _to_node(api: LabClient) -> float:
    began_s = time.perf_counter()
    async with ssh_to(api) as connection:
        await connection.run("hostname", check=True)
    return time.perf_counter() - began_s
