"""One Talos machine, from the start of its VM until that stops.

    booting ─> maintenance ─> installing ─> rebooting ─> booting ─> running

Its document `talos/<vmid>` says where it is, so that a lab that is started again continues: `boot` (the start
of the VM that it belongs to), `stage`, `since` and `booted` (lab time), `image` and `key` (what it booted,
from which drive), `problem` (why it does not come up), `authority` (of this boot's maintenance mode), and
`applied` (the configuration that is to be installed). What outlives a reboot is on the disk: see `boot`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

from pvelab.faults.latency import Work
from pvelab.faults.talos import find_talos_fault
from pvelab.server.problems import defect
from pvelab.talos import disks
from pvelab.talos.boot import COLLECTION, find_boot
from pvelab.talos.configuration import MachineConfig, parse_configuration
from pvelab.talos.etcd import Etcd
from pvelab.talos.events import EventLog
from pvelab.talos.hardware import find_install_disk, list_disks, node_id
from pvelab.talos.inside import NoInside
from pvelab.talos.kubernetes_settings import API_PORT
from pvelab.talos.listener import Listener
from pvelab.talos.services import Service, list_services, list_unmet_conditions
from pvelab.talos.user_data import read_user_data
from pvelab.world.guests.addresses import boot_seconds

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from pvelab.talos.control_plane import ControlPlane
    from pvelab.talos.guests import TalosGuests
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["TalosMachine"]


class TalosMachine(NoInside):
    """A machine that runs Talos.

    Args:
        guests: All machines of the lab.
        vmid: Its VM.

    Attributes:
        guests: As above.
        vmid: As above.
        events: What it tells of itself.
        etcd: Its etcd.
        changed: Set when something of it changes, and replaced by another then.
    """

    def __init__(self, guests: TalosGuests, vmid: int) -> None:
        self.guests = guests
        self.vmid = vmid
        self.events = EventLog()
        self.etcd = Etcd(self)
        self._listener = Listener(self)
        self.changed = asyncio.Event()
        self._command: asyncio.Future[tuple[str, Mapping[str, Any]]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._parsed: MachineConfig | None = None
        self._config: MachineConfig | None = None
        self._looked_up_at = -1
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def world(self) -> World:
        """The lab."""
        return self.guests.world

    @property
    def guest(self) -> Document:
        """The VM."""
        found = self.world.guests.get(self.vmid)
        assert found is not None, "a machine ends with its VM"  # noqa: S101
        return found

    @property
    def state(self) -> Document:
        """The document of this boot."""
        return self.world.store.get(COLLECTION, str(self.vmid)) or {}

    @property
    def stage(self) -> str:
        """Where it is, in the words of Talos."""
        return str(self.state.get("stage", "unknown"))

    @property
    def image(self) -> Mapping[str, Any]:
        """The Talos that it runs: `schematic version platform arch secureboot extensions kernel_args`."""
        found: Mapping[str, Any] = self.state.get("image", {})
        return found

    @property
    def version(self) -> str:
        """Its release: `v1.12.1`."""
        return str(self.image.get("version", "v1.12.1"))

    @property
    def platform(self) -> str:
        """The platform of its image: `nocloud`, `metal`."""
        return str(self.image.get("platform", "metal"))

    @property
    def mode(self) -> str:
        """How configurations are validated: `metal` wants an install section, `cloud` does not."""
        return "metal" if self.platform == "metal" else "cloud"

    @property
    def is_open(self) -> bool:
        """Whether its API answers."""
        return self._listener.is_open

    @property
    def address(self) -> tuple[str, int] | None:
        """Where its API listens on this machine, None while it does not."""
        return self._listener.address

    @property
    def config(self) -> MachineConfig | None:
        """The configuration that it runs with, None without one."""
        revision = self.world.store.revision
        # Everybody asks everybody for it: it is looked up once after each change of the lab.
        if self._looked_up_at != revision:
            self._looked_up_at, self._config = revision, self._find_config()
        return self._config

    def _find_config(self) -> MachineConfig | None:
        text = disks.read_state(self).get("config")
        if text is None or self.stage in ("maintenance", "installing"):
            return None
        if self._parsed is None or self._parsed.text != text:
            self._parsed = parse_configuration(str(text).encode(), self.version)
        return self._parsed

    @property
    def is_control_plane(self) -> bool:
        """Whether it is configured as a control plane machine."""
        return self.config is not None and self.config.is_control_plane

    @property
    def hostname(self) -> str:
        """What it calls itself."""
        named = None if self.config is None else self.config.hostname
        if named is None and self.platform == "nocloud" and self.guest["config"].get("name"):
            named = str(self.guest["config"]["name"]).partition(".")[0]
        if named is not None:
            return named
        digest = hashlib.sha256(node_id(self.guest).encode()).hexdigest()
        return f"talos-{digest[:3]}-{digest[3:6]}"

    @property
    def is_cut_off(self) -> bool:
        """Whether no other machine reaches it."""
        return self.has_fault("partition") or self.has_fault("unreachable")

    def has_fault(self, how: str) -> bool:
        """Return whether a fault of the lab is in force for it."""
        return find_talos_fault(self.world.store, how, self.vmid) is not None

    @property
    def control_plane(self) -> ControlPlane | None:
        """The Kubernetes of its cluster, None before there is one."""
        return self.guests.control_plane_of(self)

    @property
    def has_joined(self) -> bool:
        """Whether it is a node of a Kubernetes that answers."""
        found = self.control_plane
        return found is not None and found.is_answering and self.hostname in found.view.nodes

    @property
    def boot_id(self) -> str:
        """What the kernel calls this boot."""
        raw = hashlib.sha256(f"{self.vmid}|{self.state.get('booted', '')}".encode()).hexdigest()
        return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-8{raw[17:20]}-{raw[20:32]}"

    def list_services(self) -> list[Service]:
        """Return its services."""
        return list_services(self)

    def list_unmet_conditions(self) -> list[tuple[str, str]]:
        """Return why it is not ready: names and reasons."""
        return list_unmet_conditions(self)

    def list_members(self) -> list[TalosMachine]:
        """Return the machines of its cluster that run and that it reaches, itself among them."""
        found = [] if self.config is None else self.guests.of_cluster(self.config.cluster.get("id"))
        return [one for one in found if self.reaches(one)]

    def reaches(self, other: TalosMachine) -> bool:
        """Return whether it reaches another machine."""
        return self is other or not (self.is_cut_off or other.is_cut_off)

    def begin(self) -> None:
        """Continue where its document says."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else, for as long as the machine runs."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def end(self) -> None:
        """End: the VM stopped, or the lab does."""
        tasks = {*self._tasks, *([] if self._task is None else [self._task])}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._listener.close()

    def update(self, **fields: Any) -> None:
        """Change its document, in the running transaction or in one of its own."""
        store = self.world.store
        if store.get(COLLECTION, str(self.vmid)) is None:
            return
        with store.transaction():
            store.put(COLLECTION, str(self.vmid), {**self.state, **fields})
        self.tell()

    def enter(self, stage: str, **fields: Any) -> None:
        """Begin a stage."""
        self.update(stage=stage, since=self.world.clock.now(), **fields)
        self.events.add_status(stage, self.list_unmet_conditions())

    def tell(self) -> None:
        """Wake all that wait for a change of this machine, or of any."""
        self.changed.set()
        self.changed = asyncio.Event()
        self.guests.tell()

    def command(self, what: str, **details: Any) -> None:
        """Let it do something beside what it does: `apply`, `reboot`, `shutdown`, `reset`, `upgrade`."""
        if self._command is not None and not self._command.done():
            self._command.set_result((what, details))

    async def _run(self) -> None:
        steps = {
            "booting": self._boot,
            "maintenance": self._serve_maintenance,
            "installing": self._install,
            "rebooting": self._reboot,
            "running": self._serve,
        }
        try:
            while True:
                await steps[self.stage]()
        except Exception as err:  # The edge of a task that no one waits for.
            defect(f"the Talos machine {self.vmid}", err)

    async def _wait_since(self, seconds: float) -> None:
        await self.world.clock.sleep(float(self.state["since"]) + seconds - self.world.clock.now())

    async def _wait_while(self, how: str) -> None:
        while self.has_fault(how):
            await self.guests.wait_change()

    async def _boot(self) -> None:
        if self.state.get("problem"):
            await asyncio.Event().wait()
        await self._wait_since(boot_seconds(self.world, self.guest))
        await self._wait_while("never-boots")
        if self.config is None:
            given = read_user_data(self)
            if given is None:
                self.enter("maintenance")
            else:
                self._accept(given)
            return
        disks.set_address(self, self.config.first_address())
        if not self.is_control_plane:
            # A worker gets its certificate from a control plane machine.
            while not any(one.is_open and one.is_control_plane for one in self.list_members()):
                await self.guests.wait_change()
        self.enter("running")

    def _accept(self, config: MachineConfig) -> None:
        """Continue with a configuration: with its installation, unless Talos is on the disk already."""
        if disks.system_volume(self) is None:
            self.enter("installing", applied=config.text)
        else:
            disks.write_state(self, config=config.text)
            self.enter("booting")

    async def _serve_maintenance(self) -> None:
        async with self._listener.serve_maintenance():
            _, details = await self._next_command()
            # The answer to the one who applies it leaves first.
            await self._listener.drain()
        self._accept(details["config"])

    async def _install(self) -> None:
        await self._wait_since(self.world.latency.seconds(Work.INSTALL))
        await self._wait_while("install-hangs")
        config = parse_configuration(str(self.state["applied"]).encode(), self.version)
        disk = find_install_disk(list_disks(self.world, self.guest), config.install)
        if disk is None:
            self.events.add_error("install", f"disk {config.install.get('disk', '')!r} was not found")
        else:
            disks.install(self, disk.key, config)
        self.enter("rebooting", applied=None)

    async def _reboot(self) -> None:
        await self._wait_since(self.world.latency.seconds(Work.REBOOT))
        if self.has_fault("disk-lost"):
            disks.lose(self)
        # Talos starts the kernel on the disk itself (kexec), where there is one; else the firmware looks.
        key, image, problem = disks.system_volume(self), None, None
        if key is not None:
            image = disks.talos_on(self, key)
        else:
            found = find_boot(self.world, self.guest)
            if found is None:
                problem = "no bootable device"
            else:
                key, image, problem = found.drive.key, found.drive.talos, found.problem
        with self.world.store.transaction():
            disks.tell_guest(self, image, problem)
            fields = {"key": key, "image": image or self.image, "problem": problem, "authority": None}
            self.enter("booting", booted=self.world.clock.now(), **fields)

    async def _serve(self) -> None:
        config = self.config
        if config is None:
            self.enter("booting")
            return
        async with self._listener.serve_secured(), self.etcd.attend():
            watching = asyncio.create_task(self._watch_readiness())
            try:
                what, details = await self._next_command()
            finally:
                watching.cancel()
            self.events.add_task("stopAllServices")
            await self.events.flush()
            await self._listener.drain()
        await self._obey(what, details)

    async def _watch_readiness(self) -> None:
        """Tell in an event when it gets ready, and when it is no longer."""
        known = self.list_unmet_conditions()
        while True:
            await self.guests.wait_change()
            now = self.list_unmet_conditions()
            if now != known:
                self.events.add_status(self.stage, now)
            known = now

    async def _obey(self, what: str, details: Mapping[str, Any]) -> None:
        if what == "shutdown":
            self.enter("shutting down")
            self.guests.power_off(self.vmid)
            await asyncio.Event().wait()
        if what == "upgrade":
            disks.upgrade(self, str(details["image"]))
        if what == "reset":
            disks.wipe(self, details)
            if not details["reboot"]:
                self.guests.power_off(self.vmid)
                await asyncio.Event().wait()
        if what == "apply":
            disks.write_state(self, config=details["config"].text)
        staged = disks.read_state(self).get("staged")
        if staged is not None:
            disks.write_state(self, config=staged, staged=None)
        self.enter("rebooting")

    async def _next_command(self) -> tuple[str, Mapping[str, Any]]:
        self._command = asyncio.get_running_loop().create_future()
        try:
            return await self._command
        finally:
            with contextlib.suppress(asyncio.InvalidStateError):
                self._command.cancel()
            self._command = None

    async def endpoint(self, port: int) -> Any:
        """Return where a port of the machine is on this one."""
        control_plane = self.control_plane
        if port == API_PORT and control_plane is not None and self in control_plane.list_answering():
            return control_plane.endpoint
        return self._listener.endpoint(port)
