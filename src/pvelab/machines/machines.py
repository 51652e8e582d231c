"""Finding the machine of a guest, and letting it follow what becomes of the guest.

A machine goes with its guest: when that stops, reboots, or is removed. What is on the disk
of a guest goes with copies, snapshots and removal (`copy`, `remember`, `go_back`; removal is seen here).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from pvelab.machines.forwards import Forwards
from pvelab.machines.machine import Kind, MachineError
from pvelab.machines.roots import COLLECTION, Roots
from pvelab.nested.commands import run_on_node
from pvelab.server.problems import PveError
from pvelab.talos.boot import COLLECTION as TALOS
from pvelab.talos.boot import find_boot
from pvelab.world.guests.addresses import guest_at

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from pvelab.kubernetes.programs import Programs
    from pvelab.machines.machine import GuestMachine, MachineMaker
    from pvelab.talos.guests import TalosGuests
    from pvelab.talos.machine import TalosMachine
    from pvelab.world.store import Document, Store
    from pvelab.world.world import World

__all__ = ["Machines"]


class Machines:
    """All machines of a lab.

    Args:
        wanted: What guests are to be made of; None: sandboxes where they work, records where not.
        folder: Where the root directories are; a folder that goes with the lab if None.
        store: What the lab knows.

    Attributes:
        forwards: Ports of this machine that lead to guests.
        kubernetes: The programs of a real Kubernetes behind Talos machines; None for the lab's double.
        kubernetes_folder: Where those keep their data; a folder that goes with the lab if None.
    """

    def __init__(self, store: Store, wanted: Kind | None = None, folder: Path | None = None) -> None:
        self._wanted = wanted
        self._store = store
        self._roots = Roots(store, folder)
        self._world: World | None = None
        self._making: asyncio.Task[MachineMaker] | None = None
        self._machines: dict[int, GuestMachine] = {}
        self._talos: TalosGuests | None = None
        self.forwards = Forwards()
        self.kubernetes: Programs | None = None
        self.kubernetes_folder: Path | None = None
        self._wraps: list[Callable[[MachineMaker], MachineMaker]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, world: World) -> None:
        """Belong to a lab from now on."""
        self._world = world
        self._store.watch("guests", self._guest_changed)
        self._roots.tidy()
        self.forwards.follow(world)

    @property
    def is_real(self) -> bool:
        """Whether VMs are real ones: QEMU runs them."""
        return self._wanted is Kind.QEMU

    @property
    def roots_folder(self) -> Path:
        """Where the root directories of sandboxed guests are."""
        return self._roots.folder

    def add(self, wrap: Callable[[MachineMaker], MachineMaker]) -> None:
        """Put something around what makes the machines, before anyone looks inside a guest."""
        self._wraps.append(wrap)

    async def resume_talos(self) -> None:
        """Continue with the Talos machines that the store has, in place of those that run."""
        if self._talos is not None:
            await self._talos.close()
        if self._store.items(TALOS):
            self._talos_guests().resume()

    def talos(self, vmid: int) -> TalosMachine | None:
        """Return the Talos machine of a VM that runs, None if it runs anything else."""
        return None if self._talos is None else self._talos.get(vmid)

    async def maker(self) -> MachineMaker:
        """Return what makes the machines of this lab; it is found out once.

        Raises:
            MachineError: The kind that is asked for does not work here.
        """
        making = self._making = self._making or asyncio.create_task(self._make_maker())
        try:
            return await asyncio.shield(making)
        except MachineError:
            # What failed may have been an accident: the next one tries again.
            if self._making is making:
                self._making = None
            raise

    async def _make_maker(self) -> MachineMaker:
        from pvelab.machines.makers import make_maker  # lazy: most labs never look inside a guest

        maker = await make_maker(self._require_world(), self._wanted, self._roots, self._answer)
        for wrap in self._wraps:
            maker = wrap(maker)
        return maker

    async def kind(self) -> Kind:
        """Tell what guests are made of here."""
        return (await self.maker()).kind

    async def of(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest that runs.

        Raises:
            PveError: It does not run.
            MachineError: The kind that is asked for does not work here.
        """
        vmid = int(guest["vmid"])
        talos = self.talos(vmid)
        if talos is not None:
            return talos
        maker = await self.maker()
        present = self._require_world().guests.get(vmid)
        if present is None or present["status"] != "running":
            raise PveError(f"{'VM' if guest['type'] == 'qemu' else 'CT'} {vmid} is not running")
        if vmid not in self._machines:
            self._machines[vmid] = maker.make(present)
        return self._machines[vmid]

    def is_awake(self, vmid: int) -> bool:
        """Return whether someone has looked inside a sandboxed guest since it started."""
        from pvelab.machines.sandbox import SandboxMachine  # lazy: most labs never look inside a guest

        machine = self._machines.get(vmid)
        return isinstance(machine, SandboxMachine) and machine.has_booted

    def root_of(self, vmid: int) -> Path | None:
        """Return the root directory of a sandboxed guest, None if it has none."""
        return self._roots.find(vmid)

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Let a guest begin with what is on another one's disk, or was at a snapshot."""
        if self._has_disk(source):
            await (await self.maker()).copy(source, target, snapshot)

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Keep what is on a guest's disk under the name of a snapshot."""
        if self._has_disk(vmid):
            await (await self.maker()).remember(vmid, snapshot)

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Make a guest's disk what it was at a snapshot; the guest is stopped."""
        if self._has_disk(vmid):
            await self._end(vmid)
            await (await self.maker()).go_back(vmid, snapshot)

    def forget(self, vmid: int, snapshot: str) -> None:
        """Drop what is kept for a snapshot."""
        if self._has_disk(vmid):
            self._later(self._forget(vmid, snapshot))

    async def close(self) -> None:
        """End all machines, and remove what does not outlive the lab."""
        await self.forwards.close()
        if self._talos is not None:
            await self._talos.close()
        await asyncio.gather(*(machine.kill() for machine in self._machines.values()))
        self._machines.clear()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._making is not None and not self._making.cancelled() and self._making.exception() is None:
            await self._making.result().close()
        await asyncio.to_thread(self._roots.close)

    def _has_disk(self, vmid: int) -> bool:
        """Tell whether somebody may have looked inside a guest: disks are made when that happens first."""
        return self._making is not None or self._store.get(COLLECTION, str(vmid)) is not None

    async def _forget(self, vmid: int, snapshot: str | None) -> None:
        (await self.maker()).forget(vmid, snapshot)

    def _require_world(self) -> World:
        if self._world is None:
            raise MachineError("The lab has not begun.")
        return self._world

    async def _answer(self, vmid: int, uid: int, question: Mapping[str, Any]) -> Any:
        """Answer a program of a guest: whether an address answers, or an end of the guest."""
        world = self._require_world()
        match question.get("what"):
            case "reach":
                return _is_reached(world, str(question.get("address", "")))
            case "node":
                argv = [str(word) for word in question.get("argv") or ()]
                return await run_on_node(world, vmid, "root" if uid == 0 else "nobody", argv)
            case "power" if uid == 0:
                self._later(self._power(vmid, str(question.get("how", ""))))
                return True
        return None

    async def _power(self, vmid: int, how: str) -> None:
        from pvelab.api.nodes.lxc.power import stop_container  # lazy: it depends on the world
        from pvelab.api.nodes.qemu.power import stop_guest  # lazy: as above

        world = self._require_world()
        guest = world.guests.get(vmid)
        if guest is None or guest["status"] != "running":
            return
        with world.store.transaction():
            if how == "reboot":
                run = {**guest["run"], "booting_since": world.clock.now()}
                world.guests.update(guest, run=run)
            elif guest["type"] == "lxc":
                stop_container(world, vmid)
            else:
                stop_guest(world, vmid)

    def _guest_changed(self, key: str, old: Document | None, new: Document | None) -> None:
        vmid = int(key)
        # Guests that are there when the lab starts are resumed, or run something else.
        if old is not None and (self._talos is not None or new is not None):
            self._follow_talos(vmid, old, new)
        if new is None:
            if vmid in self._machines or self._has_disk(vmid):
                self._store.after_commit(lambda: self._later(self._remove(vmid)))
            return
        if vmid not in self._machines:
            return
        stopped = new["status"] != "running"
        booted = old is not None and _boot_of(old) != _boot_of(new)
        if stopped or booted:
            machine = self._machines.pop(vmid)
            self._store.after_commit(lambda: self._later(machine.kill()))

    def _follow_talos(self, vmid: int, old: Document, new: Document | None) -> None:
        """Begin a Talos machine with a VM that starts from a Talos image, and end it when the VM stops."""
        if new is not None and new["status"] == "running":
            if old["status"] != "running" or _boot_of(old) != _boot_of(new):
                self._store.after_commit(lambda: self._begin_talos(vmid))
        elif self._talos is not None:
            self._store.after_commit(lambda: self._end_talos(vmid))

    def _begin_talos(self, vmid: int) -> None:
        world = self._require_world()
        guest = world.guests.get(vmid)
        found = None if guest is None or self.is_real else find_boot(world, guest)
        if guest is not None and found is not None and guest["status"] == "running":
            self._talos_guests().begin(guest, found)
        else:
            self._end_talos(vmid)

    def _end_talos(self, vmid: int) -> None:
        if self._talos is not None:
            self._talos.end(vmid)

    def _talos_guests(self) -> TalosGuests:
        if self._talos is None:
            from pvelab.talos.guests import TalosGuests  # lazy: gRPC, only for labs with Talos machines

            self._talos = TalosGuests(self._require_world())
        return self._talos

    async def _end(self, vmid: int) -> None:
        machine = self._machines.pop(vmid, None)
        if machine is not None:
            await machine.kill()

    async def _remove(self, vmid: int) -> None:
        await self._end(vmid)
        # One of the same number may be there by now; it has no directory before someone looks inside.
        if self._require_world().guests.get(vmid) is None:
            with contextlib.suppress(MachineError):
                await self._forget(vmid, None)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            # Nothing runs without a loop.
            work.close()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _boot_of(guest: Document) -> tuple[Any, Any]:
    return guest["started"], guest["run"].get("booting_since")


def _is_reached(world: World, address: str) -> bool:
    with contextlib.suppress(ValueError):
        if guest_at(world, address) is not None:
            return True
        return any(node["ip"] == address for node in world.cluster.nodes().values())
    return False
