"""A nested node: a lab of its own, in the same process, for as long as its guest runs.

It keeps everything in a folder, as every lab with a data folder does. What the guest's cloud-init says makes
the node: its name, its address, root's password and keys. A guest that reboots finds its own guests
stopped, and those that start with the node are started; one that only the lab around it was restarted under
finds them as they were.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from pvelab.api.nodes.lxc.power import stop_container
from pvelab.api.nodes.qemu.power import stop_guest
from pvelab.api.nodes.settings.bulk import start_guests
from pvelab.machines.facts import host_name
from pvelab.machines.machine import MachineError
from pvelab.seeds import PREPARED_STORAGES, Seed, SeedMachine, SeedUser
from pvelab.ssh.accounts import accounts_of
from pvelab.world.access.directory import ROOT
from pvelab.world.access.sha256_crypt import is_hashed
from pvelab.world.access.tickets import hash_password
from pvelab.world.bridges import INTERFACES
from pvelab.world.guests.addresses import list_planned_addresses
from pvelab.world.guests.rows import boot_disk_size, cpu_count, memory_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pvelab.nested.uplink import Uplink
    from pvelab.runtime.start import Options, Running
    from pvelab.ssh.accounts import Account
    from pvelab.world.store import Document
    from pvelab.world.tasks import Task
    from pvelab.world.world import World

__all__ = ["Node", "StartLab", "inner_options", "prepare"]

# Starts the lab inside a guest, with its data in a folder.
StartLab = Callable[["Uplink", "Path"], AbstractAsyncContextManager["Running"]]

_BOOT = ("lab", "boot")
_INTERFACES = """\
auto lo
iface lo inet loopback

iface {card} inet manual

auto vmbr0
iface vmbr0 inet static
\taddress {address}
{gateway}\tbridge-ports {card}
\tbridge-stp off
\tbridge-fd 0

source /etc/network/interfaces.d/*
"""


class Node:
    """The lab inside one guest, from its boot to its end.

    Args:
        uplink: The guest.
        start: Starts the lab.
        before: Held by the node that the guest was before, until that has ended.
    """

    def __init__(self, uplink: Uplink, start: Callable[[], AbstractAsyncContextManager[Running]]) -> None:
        self._uplink = uplink
        self._start = start
        self._ready: asyncio.Future[Running] | None = None
        self._running: asyncio.Task[None] | None = None

    async def up(self, before: asyncio.Lock) -> Running:
        """Start it, or wait until it has started; return it.

        Args:
            before: Held by what the guest was before its boot, until that has ended.

        Raises:
            MachineError: It does not start, or was ended meanwhile.
        """
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(before, self._ready))
        try:
            return await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            if not self._ready.cancelled():
                raise
            raise MachineError("The guest has stopped.") from None

    async def down(self) -> None:
        """End it: nothing of it answers any more."""
        if self._ready is not None and self._running is not None:
            self._ready.cancel()
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _run(self, before: asyncio.Lock, ready: asyncio.Future[Running]) -> None:
        nest = self._uplink.world.nest
        try:
            async with before, self._start() as running:
                nest.worlds[self._uplink.vmid] = running.world
                try:
                    if not ready.done():
                        ready.set_result(running)
                    await asyncio.Event().wait()
                finally:
                    del nest.worlds[self._uplink.vmid]
        except Exception as err:  # The edge of the nested lab: whoever waits for it sees why it ended.
            if ready.done():
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "a nested lab ended", "exception": err}
                )
            else:
                ready.set_exception(MachineError(f"The nested node does not start: {err}"))
                # Perhaps no one waits.
                ready.exception()


def inner_options(outer: Options, uplink: Uplink, folder: Path) -> Options:
    """Return how the lab inside a guest is to run.

    Raises:
        MachineError: The guest is gone.
    """
    guest = uplink.guest
    if guest is None:
        raise MachineError(f"There is no VM {uplink.vmid}.")
    accounts = accounts_of(uplink.world, guest)
    root = accounts.pop("root", None)
    name = host_name(guest)
    seed = Seed(
        name="nested",
        cluster=name,
        nodes=(name,),
        machines={name: _machine(uplink.world, guest)},
        storages=PREPARED_STORAGES,
        authorized_keys=() if root is None else root.keys,
        system_users=tuple(
            # Their passwords are set afterwards: cloud-init is given hashes.
            SeedUser(name=one.name, password=secrets.token_hex(16), authorized_keys=one.keys)
            for one in accounts.values()
        ),
    )
    ssh_port = None if outer.ssh_port is None else 0
    return dataclasses.replace(
        outer,
        seed=seed,
        nodes=None,
        port=0,
        ssh_port=ssh_port,
        data=folder,
        identity=None,
        password=None,
        authorized_keys=(),
    )


def prepare(world: World) -> None:
    """Make a nested lab, before anyone sees it, what its node is after the boot of its guest."""
    guest = None if world.uplink is None else world.uplink.guest
    if guest is None or world.uplink is None:
        return
    node = next(iter(world.cluster.nodes()))
    boot = {"of": [guest["started"], guest["run"].get("booting_since")]}
    with world.store.transaction():
        _follow_address(world, node, _machine(world.uplink.world, guest))
        known = world.store.get(*_BOOT)
        if known is None:
            _set_passwords(world, accounts_of(world.uplink.world, guest).values())
        if known == boot:
            return
        world.store.put(*_BOOT, boot)
        for inner in list(world.guests.all().values()):
            if inner["status"] == "running":
                stop = stop_guest if inner["type"] == "qemu" else stop_container
                stop(world, int(inner["vmid"]))
        if any(inner["config"].get("onboot") for inner in world.guests.all().values()):
            world.tasks.start(
                node, "startall", "", authid=ROOT, work=lambda task: _start_all(world, task, node)
            )


def _set_passwords(world: World, accounts: Iterable[Account]) -> None:
    for one in accounts:
        if one.password:
            kept = one.password if is_hashed(one.password) else hash_password(one.password)
            world.store.put("shadow", f"{one.name}@pam", {"hash": kept})


async def _start_all(world: World, task: Task, node: str) -> None:
    await start_guests(world, task, node)


def _machine(world: World, guest: Document) -> SeedMachine:
    """Return what a nested node is made of: what its guest has."""
    config = guest["config"]
    interface = next(iter(list_planned_addresses(world, guest)), None)
    own = next((one for one in interface.addresses if one.family == "inet"), None) if interface else None
    address = ipaddress.ip_interface(f"{own.address}/{own.prefix}" if own else "127.0.0.1/8")
    given = dict(part.partition("=")[::2] for part in str(config.get("ipconfig0", "")).split(",") if part)
    gateway = given.get("gw") or (
        str(address.network[1]) if own and given.get("ip", "dhcp") == "dhcp" else ""
    )
    text = _INTERFACES.format(
        card=interface.name if interface else "eno1",
        address=address.with_prefixlen,
        gateway=f"\tgateway {gateway}\n" if gateway else "",
    )
    return SeedMachine(
        ip=str(address.ip),
        cpus=cpu_count(guest),
        memory=memory_bytes(config),
        rootfs=boot_disk_size(guest) or None,
        interfaces=text,
    )


def _follow_address(world: World, node: str, machine: SeedMachine) -> None:
    """Let the node have the address that its guest has by now."""
    document: dict[str, Any] = dict(world.cluster.nodes()[node])
    was = str(document["ip"])
    if machine.ip is None or was == machine.ip:
        return
    world.store.put("nodes", node, {**document, "ip": machine.ip})
    interfaces = world.store.get(INTERFACES, node)
    if interfaces is not None and f"address {was}/" in str(interfaces["text"]):
        world.store.put(INTERFACES, node, {**interfaces, "text": machine.interfaces})
