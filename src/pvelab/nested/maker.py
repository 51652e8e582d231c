"""Puts a lab into the machines of guests that are Proxmox nodes, and keeps its data with their disks."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import Endpoint, Kind, MachineError
from pvelab.nested.detect import is_node
from pvelab.nested.node import Node
from pvelab.nested.ports import API_PORT, SSH_PORT
from pvelab.nested.states import COLLECTION, States
from pvelab.nested.uplink import Uplink
from pvelab.server.problems import PveError
from pvelab.world.guests.addresses import boot_seconds
from pvelab.world.sqlite import SqliteDisk
from pvelab.world.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pvelab.machines.machine import Execution, GuestMachine, MachineMaker, Streams
    from pvelab.nested.node import StartLab
    from pvelab.runtime.start import Running
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["DATABASE", "NestedBoots", "NestedMachine", "NestedMaker"]

DATABASE = "lab.sqlite"


class NestedMachine:
    """The inside of a guest that is a Proxmox node: what any guest has, and the lab.

    Args:
        machine: What any guest has.
        node: The lab.
        before: Held while the lab of an earlier boot has not ended.
    """

    def __init__(self, machine: GuestMachine, node: Node, before: asyncio.Lock) -> None:
        self._machine = machine
        self._node = node
        self._before = before
        # What the node does not change.
        self.read_file = machine.read_file
        self.write_file = machine.write_file
        self.users = machine.users
        self.authorized_keys = machine.authorized_keys
        self.accepts_password = machine.accepts_password
        self.host_keys = machine.host_keys
        self.dial = machine.dial

    @property
    def kind(self) -> Kind:
        """What the guest itself is made of."""
        return self._machine.kind

    async def start_lab(self) -> Running:
        """Return the lab, which is started if need be.

        Raises:
            MachineError: It does not start.
        """
        return await self._node.up(self._before)

    async def boot(self) -> None:
        """Boot the guest and its node."""
        await self._machine.boot()
        await self.start_lab()

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Run a program in the guest."""
        await self.boot()
        return await self._machine.run(wanted, streams)

    async def endpoint(self, port: int) -> Endpoint | None:
        """Return where the API of the node listens, and its SSH server where the guest has no programs."""
        if port == API_PORT:
            return Endpoint(host="127.0.0.1", port=(await self.start_lab()).port)
        if port == SSH_PORT and self.kind is Kind.RECORDED:
            ssh_port = (await self.start_lab()).ssh_port
            return None if ssh_port is None else Endpoint(host="127.0.0.1", port=ssh_port)
        return await self._machine.endpoint(port)

    async def stop(self) -> None:
        """Shut the node down, then the guest."""
        await self._node.down()
        await self._machine.stop()

    async def kill(self) -> None:
        """End both at once."""
        await self._node.down()
        await self._machine.kill()


class NestedMaker:
    """Makes the machines of a lab, with nested labs in those that are nodes.

    Args:
        inner: Makes what any guest has.
        world: The lab.
        folder: Where the data of nested labs is; None: it goes with the lab.
        start: Starts the lab inside a guest.
    """

    def __init__(self, inner: MachineMaker, world: World, folder: Path | None, start: StartLab) -> None:
        self._inner = inner
        self._world = world
        self._states = States(world.store, folder)
        self._start = start
        self._copy = inner.copy_folder
        self._locks: dict[int, asyncio.Lock] = {}
        self._states.tidy()

    @property
    def kind(self) -> Kind:
        """What any guest is made of."""
        return self._inner.kind

    @property
    def reason(self) -> str | None:
        """Why guests are not made of something better."""
        return self._inner.reason

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest, with a nested lab if it is a node."""
        machine = self._inner.make(guest)
        # A real one is a node by itself.
        if machine.kind is Kind.QEMU or not is_node(self._world, guest):
            return machine
        vmid = int(guest["vmid"])
        uplink = Uplink(world=self._world, vmid=vmid)
        node = Node(uplink, lambda: self._start(uplink, self._states.of(vmid)))
        return NestedMachine(machine, node, self._locks.setdefault(vmid, asyncio.Lock()))

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Let a guest begin with a copy of another one's lab."""
        await self._inner.copy(source, target, snapshot)
        if self._has(source):
            copy = self._copy if snapshot else functools.partial(self._copy_live, source)
            await self._states.give(target, self._states.find(source, snapshot), copy)

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Keep a copy of a guest's lab."""
        await self._inner.remember(vmid, snapshot)
        if self._has(vmid):
            await self._states.keep(vmid, snapshot, functools.partial(self._copy_live, vmid))

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Give a guest a copy of the lab that a snapshot keeps; a new one if it had none by then."""
        await self._inner.go_back(vmid, snapshot)
        if self._has(vmid):
            async with self._locks.setdefault(vmid, asyncio.Lock()):
                await self._states.give(vmid, self._states.find(vmid, snapshot), self._copy)

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove the lab of a guest, or the copy of a snapshot."""
        self._inner.forget(vmid, snapshot)
        if self._has(vmid):
            self._states.forget(vmid, snapshot)

    async def copy_folder(self, source: Path, target: Path) -> None:
        """Copy as the makers of all guests do."""
        await self._inner.copy_folder(source, target)

    async def close(self) -> None:
        """Remove what does not outlive the lab."""
        await self._inner.close()
        await asyncio.to_thread(self._states.close)

    def _has(self, vmid: int) -> bool:
        """Return whether a guest has a lab, or had one at a snapshot."""
        return self._world.store.get(COLLECTION, str(vmid)) is not None

    async def _copy_live(self, vmid: int, source: Path, target: Path) -> None:
        """Copy the folder of a lab that may run: its database as a whole, whatever is written meanwhile."""
        await self._copy(source, target)
        inner = self._world.nest.worlds.get(vmid)
        if inner is not None:
            _copy_database(inner, source, source, target)


class NestedBoots:
    """Boots nested nodes and real VMs: unlike other machines they are there without being looked at.

    Args:
        world: The lab.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._booting: set[asyncio.Task[None]] = set()

    def attend(self) -> None:
        """Boot those that run now, and those that are started from now on."""
        store = self._world.store
        # In a transaction, as every later change is: what is to be done waits for its end.
        with store.transaction():
            store.watch("guests", self._guest_changed)

    async def close(self) -> None:
        """Give up what still boots."""
        for task in self._booting:
            task.cancel()
        if self._booting:
            await asyncio.wait(self._booting)

    def _guest_changed(self, _key: str, old: Document | None, new: Document | None) -> None:
        if new is None or new["status"] != "running" or not self._is_awaited(new):
            return
        if old is None or old["status"] != "running" or _boot_of(old) != _boot_of(new):
            self._world.store.after_commit(lambda: self._boot_later(new))

    def _is_awaited(self, guest: Document) -> bool:
        return is_node(self._world, guest) or (self._world.machines.is_real and guest["type"] == "qemu")

    def _boot_later(self, guest: Document) -> None:
        task = asyncio.get_running_loop().create_task(self._boot(guest))
        self._booting.add(task)
        task.add_done_callback(self._booting.discard)

    async def _boot(self, guest: Document) -> None:
        if not self._world.machines.is_real:
            since = guest["run"].get("booting_since", guest["started"])
            await self._world.clock.sleep(since + boot_seconds(self._world, guest) - self._world.clock.now())
        present = self._world.guests.get(int(guest["vmid"]))
        if present is None or _boot_of(present) != _boot_of(guest):
            return
        try:
            machine = await self._world.machines.of(present)
            if isinstance(machine, NestedMachine):
                await machine.start_lab()
            elif machine.kind is Kind.QEMU:
                from pvelab.machines.qemu.power import power_on  # lazy: few labs have guests that really boot

                await power_on(self._world, int(guest["vmid"]))
        except (MachineError, PveError) as err:
            # It stopped meanwhile, or does not come up, which anyone who connects sees too.
            context = {"message": f"VM {guest['vmid']} does not come up", "exception": err}
            asyncio.get_running_loop().call_exception_handler(context)


def _copy_database(world: World, folder: Path, source: Path, target: Path) -> None:
    """Write the database of a lab that runs, and those of the labs inside it, into a copy of its folder."""
    path = target / folder.relative_to(source) / DATABASE
    for stale in path.parent.glob(f"{DATABASE}*"):
        stale.unlink()
    copied = Store(SqliteDisk(path))
    copied.replace_all(world.store.dump())
    copied.close()
    for vmid, inner in world.nest.worlds.items():
        own = world.store.get(COLLECTION, str(vmid)) or {}
        if "id" in own:
            _copy_database(inner, folder / "nested" / str(own["id"]), source, target)


def _boot_of(guest: Document) -> tuple[Any, Any]:
    return guest["started"], guest["run"].get("booting_since")
