"""All Talos machines of a lab: begun with their VMs, found by address and by cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pvelab.faults.talos import TALOS_KINDS
from pvelab.talos.boot import COLLECTION
from pvelab.talos.control_plane import ControlPlane, ControlPlanes
from pvelab.talos.disks import make_run
from pvelab.talos.hardware import list_addresses
from pvelab.talos.machine import TalosMachine

if TYPE_CHECKING:
    from pvelab.talos.boot import Boot
    from pvelab.world.store import Document
    from pvelab.world.world import World
    from stackyard.base.serving.certificate import Certificate

__all__ = ["TalosGuests"]


class TalosGuests:
    """The Talos machines of a lab.

    Args:
        world: The lab.

    Attributes:
        world: The lab.
        changed: Set at the next change of any machine, and replaced by another then.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._machines: dict[int, TalosMachine] = {}
        self._control_planes: ControlPlanes | None = None
        self.changed = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()
        world.store.watch("faults", self._fault_changed)

    def get(self, vmid: int) -> TalosMachine | None:
        """Return the machine of a VM that runs."""
        return self._machines.get(vmid)

    def all(self) -> list[TalosMachine]:
        """Return the machines of all VMs that run."""
        return list(self._machines.values())

    def control_plane_of(self, machine: TalosMachine) -> ControlPlane | None:
        """Return the Kubernetes that a machine belongs to, None while there is none."""
        return None if self._control_planes is None else self._control_planes.of(machine)

    def begin(self, guest: Document, boot: Boot) -> None:
        """Begin with a VM that has just started, in place of what ran in it before."""
        vmid, store = int(guest["vmid"]), self.world.store
        self.end(vmid)
        with store.transaction():
            self.world.guests.update(guest, run=make_run(guest, boot.drive.talos, boot.problem))
            document = {
                "boot": list(boot_of(guest)),
                "stage": "booting",
                "booted": guest["started"],
                "since": guest["run"].get("booting_since", guest["started"]),
                "key": boot.drive.key,
                "image": boot.drive.talos,
                "problem": boot.problem,
            }
            store.put(COLLECTION, str(vmid), document)
        self._add(vmid)

    def resume(self) -> None:
        """Continue with the machines of a lab that was stopped."""
        for key, document in list(self.world.store.items(COLLECTION).items()):
            guest = self.world.guests.get(key)
            if guest is None or guest["status"] != "running" or list(boot_of(guest)) != document["boot"]:
                with self.world.store.transaction():
                    self.world.store.delete(COLLECTION, key)
            else:
                self._add(int(key))

    def end(self, vmid: int) -> None:
        """End a machine: its VM stopped, or starts again."""
        machine = self._machines.pop(vmid, None)
        if machine is None:
            return
        with self.world.store.transaction():
            self.world.store.delete(COLLECTION, str(vmid))
        task = asyncio.get_running_loop().create_task(machine.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        self.tell()

    async def close(self) -> None:
        """End all machines; their documents stay."""
        if self._control_planes is not None:
            await self._control_planes.close()
            self._control_planes = None
        machines, self._machines = list(self._machines.values()), {}
        await asyncio.gather(*(machine.end() for machine in machines), *self._ending)

    def at(self, address: str) -> TalosMachine | None:
        """Return the machine that has an address or a name."""
        for machine in self._machines.values():
            if address in (*list_addresses(self.world, machine.guest), machine.hostname):
                return machine
        return None

    def of_cluster(self, cluster: Any) -> list[TalosMachine]:
        """Return the machines of a cluster."""
        return [
            machine
            for machine in self._machines.values()
            if machine.config is not None and machine.config.cluster.get("id") == cluster
        ]

    def authority_of(self, machine: TalosMachine) -> Certificate | None:
        """Return the OS CA with its key: a machine's own, or that of a control plane of its cluster."""
        for one in (machine, *machine.list_members()):
            authority = None if one.config is None else one.config.authority
            if authority is not None and authority.key_pem:
                return authority
        return None

    def power_off(self, vmid: int) -> None:
        """Stop a VM, as its system does at the end of a shutdown."""
        from pvelab.api.nodes.qemu.power import stop_guest  # lazy: it depends on the world

        with self.world.store.transaction():
            stop_guest(self.world, vmid)

    def tell(self) -> None:
        """Wake all that wait for a change of any machine."""
        self.changed.set()
        self.changed = asyncio.Event()

    async def wait_change(self) -> None:
        """Wait until something of any machine changes."""
        await self.changed.wait()

    def _fault_changed(self, _key: str, old: Document | None, new: Document | None) -> None:
        if (
            TALOS_KINDS & {str(document["kind"]) for document in (old, new) if document is not None}
            and self._machines
        ):
            self.world.store.after_commit(self._tell_all)

    def _tell_all(self) -> None:
        for machine in self.all():
            machine.tell()

    def _add(self, vmid: int) -> None:
        if self._control_planes is None:
            self._control_planes = ControlPlanes(self)
        machine = self._machines[vmid] = TalosMachine(self, vmid)
        machine.begin()
        self.tell()


def boot_of(guest: Document) -> tuple[Any, Any]:
    """Return what distinguishes one start of a VM from another."""
    return guest["started"], guest["run"].get("booting_since")
