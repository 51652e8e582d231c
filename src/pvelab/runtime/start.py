"""Starting a lab: in an event loop (`start`), or in a thread of its own for blocking clients (`running`)."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ipaddress
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pvelab import api as resources
from pvelab.api.cluster.ha.guest_tasks import GuestTasks
from pvelab.api.cluster.replication.runs import ReplicationPlan
from pvelab.api.nodes.vzdump.scheduled import BackupPlan
from pvelab.faults.kinds import add_fault, remove_fault
from pvelab.faults.latency import Latency
from pvelab.machines.machine import Kind
from pvelab.machines.machines import Machines
from pvelab.machines.qemu.programs import require_qemu
from pvelab.nested.open_nested import make_answer, open_nest
from pvelab.runtime.lifecycle import InitialContent, Lifecycle
from pvelab.runtime.options import Options, certificate_of, merge_options
from pvelab.runtime.saved import SavedStates
from pvelab.runtime.ssh_ports import open_ssh_ports
from pvelab.runtime.stored_login import read_or_create_login
from pvelab.seeds import Seed
from pvelab.seeds import stock as seed
from pvelab.server import facts
from pvelab.server.control import Controls
from pvelab.server.dispatch import Dispatcher
from pvelab.server.http import Api
from pvelab.server.routing import Table, collect
from pvelab.talos.strangers import run_strangers
from pvelab.truenas.login import make_api_key
from pvelab.world.clock import LabClock
from pvelab.world.ha.cycle import Cycle
from pvelab.world.sqlite import SqliteDisk
from pvelab.world.storage.blobs import Blobs
from pvelab.world.storage.download import Fetcher
from pvelab.world.store import Store
from pvelab.world.world import World, assemble
from stackyard.base import directories, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from pvelab.nested.uplink import Uplink
    from pvelab.world.scheduler import Plan

__all__ = ["Options", "Running", "certificate_of", "running", "start"]

DATABASE = "lab.sqlite"
FILES = "files"
SNAPSHOTS = "snapshots"
GUESTS = "guests"
KUBERNETES = "kubernetes"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A lab that answers.

    Attributes:
        url: Where it answers, without a path.
        port: Its port.
        fingerprint: The SHA-256 of its certificate.
        username: root@pam.
        password: Its password.
        api_token: `root@pam!lab=<uuid>`, with all privileges of root.
        nodes: The names of the nodes.
        ssh_ports: The port of each node's SSH server; empty without an SSH side.
        factory_url: Where the double of the Talos image factory answers, None without one.
        truenas_url: Where the double of TrueNAS answers, with the certificate of the lab; None without one.
        world: Everything inside, for tests in the same process.
        dispatcher: The door for calls that do not come over HTTP.
        lifecycle: What makes it new.
        loop: The event loop that it runs in; another thread touches `world` only through `on_loop`.
    """

    url: str
    port: int
    fingerprint: str
    username: str
    password: str
    api_token: str
    nodes: tuple[str, ...]
    ssh_ports: Mapping[str, int] = field(default_factory=dict)
    factory_url: str | None = None
    truenas_url: str | None = None
    world: World
    dispatcher: Dispatcher
    lifecycle: Lifecycle
    loop: asyncio.AbstractEventLoop

    @property
    def ssh_port(self) -> int | None:
        """The SSH port of the first node, None without an SSH side."""
        return next(iter(self.ssh_ports.values()), None)

    def on_loop(self, action: Callable[[], T]) -> T:
        """Do something to `world` from another thread than the lab's, and return what it returned."""

        async def act() -> T:
            return action()

        return asyncio.run_coroutine_threadsafe(act(), self.loop).result()

    def add_fault(self, kind: str, **fields: Any) -> str:
        """Make something fail on purpose, from any thread; return the name of the fault.

        Raises:
            PveError: The lab knows no such fault.
        """

        def add() -> str:
            with self.world.store.transaction():
                return str(add_fault(self.world, {"kind": kind, **fields})["name"])

        return self._on_loop_or_here(add)

    def remove_fault(self, name: str) -> None:
        """Undo a fault, from any thread.

        Raises:
            PveError: There is none of that name.
        """

        def remove() -> None:
            with self.world.store.transaction():
                remove_fault(self.world, name)

        self._on_loop_or_here(remove)

    def reset(self, seed: Seed | None = None) -> None:
        """Make the lab new, from another thread than its own: its seed (or another) and nothing else.

        Who has logged in stays logged in.

        Raises:
            SeedError: The lab refuses something of the seed; it is new without it.
        """
        asyncio.run_coroutine_threadsafe(self.lifecycle.reset(seed), self.loop).result()

    def _on_loop_or_here(self, action: Callable[[], T]) -> T:
        with contextlib.suppress(RuntimeError):
            if asyncio.get_running_loop() is self.loop:
                return action()
        return self.on_loop(action)

    def document(self) -> dict[str, Any]:
        """Return what a client needs to know, as the ready line has it."""
        names = ("url", "api_token", "username", "password", "ssh_port", "fingerprint")
        facts = {name: getattr(self, name) for name in names}
        if self.factory_url is not None:
            facts["factory_url"] = self.factory_url
        if self.truenas_url is not None:
            facts["truenas_url"] = self.truenas_url
            facts["truenas_api_key"] = make_api_key(self.api_token)
        return {**facts, "ssh_ports": dict(self.ssh_ports), "nodes": list(self.nodes)}


@contextlib.asynccontextmanager
async def start(options: Options | None = None, **changes: Any) -> AsyncIterator[Running]:
    """Run a lab for the length of the block: `async with lab.start(nodes=("a", "b")) as running`.

    Args:
        options: How to run it.
        changes: Single fields of `Options`, in place of those.

    Raises:
        DataFolderBusyError: Another lab uses the data folder.
        ListenError: The address or port cannot be had.
        QemuMissingError: Guests are to be real, and QEMU is not there.
    """
    async with _start(merge_options(options, changes)) as running:
        yield running


@contextlib.asynccontextmanager
async def _start(chosen: Options, uplink: Uplink | None = None) -> AsyncIterator[Running]:
    """Run a lab; one inside a guest of another has an uplink."""
    if chosen.guests is Kind.QEMU:
        require_qemu()
    store = Store(_disk(chosen.data))
    blobs = Blobs(None if chosen.data is None else chosen.data / FILES)
    try:
        saved = SavedStates(None if chosen.data is None else chosen.data / SNAPSHOTS)
        blobs.hold(saved.files())
        world = _world(store, chosen, blobs, uplink)
        dispatcher = Dispatcher(world, Table(world.facts, collect(resources)))
        certificate = certificate_of(chosen)
        lifecycle = Lifecycle(
            world,
            dispatcher,
            _make_initial_content(chosen),
            fingerprint=certificate.fingerprint,
            saved=saved,
            certificate=certificate.certificate_pem.decode(),
        )
        await lifecycle.begin()
        attendant = open_nest(world, chosen, _start)
        api = Api(world, dispatcher, control=Controls(world, lifecycle).handle, spool=chosen.data)
        async with (
            serving.serve(
                make_answer(world, api),
                bind=chosen.bind,
                port=chosen.port,
                tls=serving.Tls(certificate),
                limits=chosen.limits,
            ) as server,
            _ssh_side(world, dispatcher, chosen) as ssh_ports,
            _factory_side(world, chosen) as factory_url,
            _truenas_side(world, chosen, certificate) as truenas_url,
            run_strangers(world),
        ):
            world.nest.api_port = server.port
            world.nest.ssh_ports.update(ssh_ports)
            world.nest.directory.follow(world)
            attendant.attend()
            await world.machines.resume_talos()
            manager = Cycle(world, GuestTasks())
            try:
                async with (
                    world.ha.attend(manager.act, manager.agent.has_task),
                    world.scheduler.attend(*_plans(world)),
                ):
                    made = _make_running(dispatcher, lifecycle, server, ssh_ports)
                    yield dataclasses.replace(made, factory_url=factory_url, truenas_url=truenas_url)
            finally:
                await world.tasks.close()
                await attendant.close()
                await world.nest.close()
                await world.nest.directory.leave(world)
                await world.executions.close()
                await world.machines.close()
    finally:
        blobs.close()
        store.close()


@contextlib.contextmanager
def running(options: Options | None = None, **changes: Any) -> Iterator[Running]:
    """Run a lab in a thread for the length of the block, for clients that block: see `start`."""
    ready = threading.Event()
    box: dict[str, Any] = {}

    async def run() -> None:
        stop = asyncio.Event()
        async with start(options, **changes) as it:
            box.update(running=it, stop=stop)
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as err:  # The edge of the thread: the caller's thread raises it instead.
            box["error"] = err
            ready.set()

    thread = threading.Thread(target=work, name="lab", daemon=True)
    thread.start()
    ready.wait()
    if "error" in box:
        raise box["error"]
    try:
        yield box["running"]
    finally:
        box["running"].loop.call_soon_threadsafe(box["stop"].set)
        thread.join()
    if "error" in box:
        raise box["error"]


def _disk(folder: Path | None) -> SqliteDisk | None:
    if folder is None:
        return None
    directories.ensure_private(folder)
    return SqliteDisk(folder / DATABASE)


def _world(store: Store, options: Options, blobs: Blobs, uplink: Uplink | None) -> World:
    latency = Latency(speed=options.speed, overrides_s=options.latency_s)
    fetcher = Fetcher(anywhere=options.allow_downloads)
    machines = Machines(store, options.guests, None if options.data is None else options.data / GUESTS)
    machines.forwards.listen_on(options.bind)
    machines.kubernetes = options.kubernetes
    machines.kubernetes_folder = None if options.data is None else options.data / KUBERNETES
    # Time is the same in the labs inside as around them.
    clock = LabClock() if uplink is None else uplink.world.clock
    world = assemble(
        facts.load(), store, clock, latency, blobs=blobs, fetcher=fetcher, machines=machines, uplink=uplink
    )
    if options.guest_network is not None:
        world.nest.guest_network = ipaddress.IPv4Network(options.guest_network)
    blobs.tidy()
    world.tasks.recover()
    return world


def _plans(world: World) -> tuple[Plan, ...]:
    """Return the kinds of jobs that run at certain times."""
    return (ReplicationPlan(world), BackupPlan(world))


def _make_initial_content(options: Options) -> InitialContent:
    """Return what a new lab holds; one that lives in memory has the login of its last start."""
    seed, password = options.seed, options.password
    if options.identity is not None and options.data is None:
        login = read_or_create_login(options.identity)
        seed = dataclasses.replace(seed, token=seed.token or login.token)
        password = password or seed.password or login.password
    return InitialContent(seed=seed, nodes=options.nodes, password=password)


@contextlib.asynccontextmanager
async def _ssh_side(
    world: World, dispatcher: Dispatcher, options: Options
) -> AsyncIterator[Mapping[str, int]]:
    """Run the SSH side if one is wanted, and give the port of each node."""
    if options.ssh_port is None:
        yield {}
        return
    where, keys = (options.bind, options.ssh_port), options.identity or options.data
    async with open_ssh_ports(
        world, dispatcher, where, keys=keys, authorized=options.authorized_keys
    ) as ports:
        yield ports


@contextlib.asynccontextmanager
async def _factory_side(world: World, options: Options) -> AsyncIterator[str | None]:
    """Run the double of the Talos image factory if one is wanted, and give its URL."""
    if options.factory_port is None:
        yield None
        return
    from pvelab.talos.factory import serve_factory  # lazy: only for labs with a factory

    async with serve_factory(world, options.bind, options.factory_port) as url:
        yield url


@contextlib.asynccontextmanager
async def _truenas_side(
    world: World, options: Options, certificate: serving.Certificate
) -> AsyncIterator[str | None]:
    """Run the double of TrueNAS if one is wanted, and give its URL."""
    if options.truenas_port is None:
        yield None
        return
    from pvelab.truenas.service import serve_truenas  # lazy: only for labs with a TrueNAS

    key, where = make_api_key(seed.credentials(world).api_token), (options.bind, options.truenas_port)
    async with serve_truenas(world, certificate, key, where=where) as url:
        yield url


def _make_running(
    dispatcher: Dispatcher, lifecycle: Lifecycle, server: serving.Server, ssh_ports: Mapping[str, int]
) -> Running:
    world = lifecycle.world
    login = seed.credentials(world)
    return Running(
        url=server.url,
        port=server.port,
        fingerprint=server.fingerprint or "",
        username=login.username,
        password=login.password,
        api_token=login.api_token,
        nodes=tuple(world.cluster.nodes()),
        ssh_ports=ssh_ports,
        world=world,
        dispatcher=dispatcher,
        lifecycle=lifecycle,
        loop=asyncio.get_running_loop(),
    )
