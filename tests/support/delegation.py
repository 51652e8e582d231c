"""A lab with an inner Proxmox node that one delegates to over real SSH, for the tests of one module.

The lab runs in a thread with a loop of its own, so that tests share it: `rig.run(rig.delegate("create"))`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import pytest
from tests import conftest
from tests.support.engine import real_engine
from tests.support.inner_machine import INNER, Outer
from tests.support.lab import LabClient, lab_client
from tests.support.lab_nested import IMAGE, PASSWORD, client_of, nested_node, sessions
from tests.support.path_runs import WatchedJournal

from pvelab.machines.bubblewrap import find_bubblewrap
from pvelab.machines.machine import Kind
from pvelab.server.journal import JournalEntry
from pvelab.world.storage.contents import put_stand_in
from stackyard.base import events
from stackyard.clients.ssh.host import Host
from stackyard.clients.ssh.shell import connect
from stackyard.engine.version import Flavour
from stackyard.operator.delegation.archive import Archive, find_archive
from stackyard.operator.delegation.delegate import Delegated, DelegationContext, delegate
from stackyard.operator.delegation.offer import offer_store
from stackyard.operator.delegation.store_channel import OfferedStore
from stackyard.operator.delegation.upload import runtime_of
from stackyard.operator.outcome import Verb
from stackyard.operator.record import RunRecord
from stackyard.operator.record_store import decode_record
from stackyard.operator.request import VerbRequest
from stackyard.sources.manifest.model import Manifest
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.load import Site
from stackyard.state import layout

__all__ = ["ARCHIVES", "INNER", "Rig", "delegation_rig"]

T = TypeVar("T")

# Packed once a machine, and not once a test: it takes ten seconds.
ARCHIVES = conftest.CACHE / "stackyard" / "delegation"
ADDRESS = "10.0.12.5"
LEAF_IMAGE = "local:import/debian-13.qcow2"
PATIENCE_S = 300.0


class Proxy:
    """A way to the SSH server of the inner node that a test can cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def close(self) -> None:
        self.cut()
        self._server.close()
        await self._server.wait_closed()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        own = asyncio.current_task()
        assert own is not None
        self._tasks.add(own)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._writers |= ends
        pumps = [asyncio.create_task(_pump(*way)) for way in ((reader, far_writer), (far_reader, writer))]
        await asyncio.wait(pumps)
        self._writers -= ends
        self._tasks.discard(own)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(2**18):
            writer.write(data)
            await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@dataclass(kw_only=True)
class Rig:
    """The lab, its inner node, and the site that both are in."""

    loop: asyncio.AbstractEventLoop
    api: LabClient
    session: aiohttp.ClientSession
    folder: Path
    engine: str
    archive: Archive
    proxy: Proxy
    port: int
    seen: list[events.Event] = field(default_factory=list)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the loop of the lab."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def enter(self, patch: pytest.MonkeyPatch) -> Rig:
        """Use it in a test, which begins with an environment of its own."""
        patch.setenv("STACKYARD_TOFU", self.engine)
        self.seen.clear()
        return self

    def manifest(self, *nodes: dict[str, Any]) -> Manifest:
        """Return a manifest with these nodes inside of the inner node."""
        host = {"name": INNER, "type": "pve", "cores": 4, "memory": 8192, "disk": 64, "image": "pve"}
        document = {
            "schema_version": 2,
            "name": "deep",
            "nodes": [host, *({"type": "vm", "parent": INNER, "preset": "small", **node} for node in nodes)],
        }
        return find_manifest(self.site, ManifestRequest(text=json.dumps(document)))

    @property
    def site(self) -> Site:
        """The site as it is now."""
        return Site.load(self.folder)

    def host(self, port: int, password: str) -> Host:
        """Return how to log in to a machine of the lab."""
        known = self.folder.parent / "known_hosts"
        return Host(address="127.0.0.1", port=port, username="root", password=password, known_hosts=known)

    async def delegate(
        self, verb: str, *nodes: dict[str, Any], on_event: Callable[[events.Event], None] = events.ignore
    ) -> Delegated:
        """Have the inner node do something with these nodes."""
        manifest = self.manifest(*nodes)
        subtree = manifest.subtree(INNER)
        request = VerbRequest(text=json.dumps(subtree.document()), host=INNER, is_delegated=True)
        with offer_store(self.site.store, manifest.name, "pve1", INNER) as offered:
            return await self._delegate(verb, manifest, request, offered, on_event)

    async def _delegate(
        self,
        verb: str,
        manifest: Manifest,
        request: VerbRequest,
        offered: OfferedStore,
        on_event: Callable[[events.Event], None],
    ) -> Delegated:
        context = DelegationContext(
            site=self.site,
            host="pve1",
            inner=self.host(self.port, PASSWORD),
            outer=self.host(self.api.running.ssh_port or 0, self.api.running.password),
            request=request,
            archive=self.archive,
            offered=offered,
            beat_s=0.5,
        )

        def emit(event: events.Event) -> None:
            self.seen.append(event)
            on_event(event)

        subtree = manifest.subtree(INNER)
        return await delegate(
            Verb(verb), manifest.by_name[INNER], ADDRESS, subtree=subtree, ctx=context, emit=emit
        )

    def inner_record(self) -> RunRecord:
        """Return the record of the runs on the inner node, which is with the outer run."""
        scope = layout.inner(f"manifest/{self.manifest().name}/pve1", INNER)
        with contextlib.closing(self.site.store.read()) as objects:
            (found,) = objects.list(f"{scope}operator/")
            stored = objects.get(found.key)
        assert stored is not None
        return decode_record(stored.data, found.key)

    def outer(self, *nodes: dict[str, Any]) -> Outer:
        """Return an outer run in a process of its own that has the inner node create these nodes."""
        known = str(self.folder.parent / "known_hosts")
        login = {"address": "127.0.0.1", "username": "root", "known_hosts": known}
        own = self.api.running
        return Outer(
            site=str(self.folder),
            host="pve1",
            inner={**login, "port": self.port, "password": PASSWORD},
            outer={**login, "port": own.ssh_port or 0, "password": own.password},
            text=json.dumps(self.manifest(*nodes).document()),
            archive=(str(self.archive.path), self.archive.digest, self.archive.size_bytes),
            address=ADDRESS,
        )

    @property
    def program(self) -> str:
        """The stackyard of the inner node."""
        return f"{runtime_of(self.archive)}/bin/stackyard"

    @contextlib.contextmanager
    def when_a_guest_is_made(self, deed: Callable[[], None]) -> Iterator[None]:
        """Do something once, in the thread of the lab, when the inner node begins to make a guest."""
        journal, world = WatchedJournal(), self.inner.world
        deeds = [deed]

        def saw(entry: JournalEntry) -> None:
            if ":qmcreate:" in (entry.result or "") and deeds:
                deeds.pop()()

        journal.on_call = saw

        async def watch() -> None:
            object.__setattr__(world, "journal", journal)

        self.run(watch())
        yield
        journal.on_call = None
        assert deeds == [], "no guest was made"

    async def said(self, command: str) -> str:
        """Return what a command on the inner node says."""
        async with connect(self.host(self.port, PASSWORD)) as shell:
            return await shell.run(command, timeout_s=PATIENCE_S)

    @property
    def inner(self) -> LabClient:
        """The API of the inner node, which is another one after each boot."""
        return self.run(client_of(self.api, 100, self.session))

    def guests(self) -> dict[int, str]:
        """Return the guests of the inner node."""
        return {int(vm["vmid"]): str(vm["name"]) for vm in self.run(self.inner.get(f"/nodes/{INNER}/qemu"))}


@contextlib.asynccontextmanager
async def _laid_out(folder: Path, engine: str, archive: Archive) -> AsyncIterator[Rig]:
    found = await find_bubblewrap()
    if isinstance(found, str):
        pytest.skip(found)
    async with lab_client(guests=Kind.SANDBOX, ssh_port=0) as api, sessions() as session:
        with api.world.store.transaction():
            put_stand_in(api.world, LEAF_IMAGE, "pve1", 2**20)
        await nested_node(api, 100, session, ipconfig0=f"ip={ADDRESS}/24,gw=10.0.12.1")
        [guest] = (await api.raw("GET", "/guests", base="/_lab")).json["guests"]
        _write_site(folder, api)
        proxy = Proxy(guest["port"])
        try:
            yield Rig(
                loop=asyncio.get_running_loop(),
                api=api,
                session=session,
                folder=folder,
                engine=engine,
                archive=archive,
                proxy=proxy,
                port=await proxy.start(),
            )
        finally:
            await proxy.close()


def _write_site(folder: Path, api: LabClient) -> None:
    files = {
        "site.yaml": "defaults: {domain: lab.test}\n"
        f"images: {{debian-13: {{volume: '{LEAF_IMAGE}'}}, pve: {{volume: '{IMAGE}'}}}}\n",
        "nodes/pve1.yaml": f"api_endpoint: {api.running.url}\ndatastore: local-lvm\n"
        f"api_fingerprint: '{api.running.fingerprint}'\n",
        "nodes/elsewhere.yaml": "api_endpoint: https://192.0.2.1:8006\ndatastore: local-lvm\n",
        "presets/small.yaml": "cores: 1\nmemory: 512\ndisk: 4\n",
        "presets/unused.yaml": "cores: 8\nmemory: 512\ndisk: 4\n",
        "postures/dev.yaml": "auth: {method: network}\n",
        "postures/unused.yaml": "auth: {method: network}\n",
        "specs/base.yaml": "schema_version: 1\nplatform: {packages: [htop]}\n",
        "specs/unused.yaml": "schema_version: 1\n",
        "secrets.yaml": f"api_tokens: {{pve1: '{api.running.api_token}', elsewhere: 'a@pam!x=outer-token'}}\n"
        "passwords: {vm_root: $6$salt$hash, node_pve1: outer-password}\n"
        "auth: {signing_key: '" + "ab" * 32 + "', node_tokens: {stranger: strange-token}}\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@contextlib.contextmanager
def delegation_rig(folder: Path) -> Iterator[Rig]:
    """Start the lab in a thread, for the tests of a module."""
    engine = str(real_engine(Flavour.TOFU).path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STACKYARD_TOFU", engine)
        archive = asyncio.run(find_archive(cache=ARCHIVES))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="delegation-lab")
    thread.start()
    opened = _laid_out(folder, engine, archive)
    try:
        rig = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(PATIENCE_S)
        try:
            yield rig
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
