"""Serving the provider in this process, and what an engine needs to find it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.provider.guest_waits import GuestWaits
from stackyard.provider.journal import Journal
from stackyard.provider.lazy_socket import LazySocket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from stackyard.clients.objects import Objects
    from stackyard.clients.proxmox import Client
    from stackyard.clients.ssh.host import Host
    from stackyard.provider.registry import Registry
    from stackyard.provider.schema import Schema
    from stackyard.provider.session import Session
    from stackyard.provider.sessions import Sessions
    from stackyard.provider.values import Object

__all__ = ["Options", "RunningProvider", "serve"]

# Each engine reads this as an address in its own registry.
_ADDRESS = "bpg/proxmox"
_PROTOCOL = 6
_GRACE_S = 5.0
_LONGEST_FOLDER_BYTES = 60
_USUAL = ("proxmox_virtual_environment_vm", "proxmox_virtual_environment_container")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to serve.

    Attributes:
        environment: Where settings come from that the provider block leaves out (`PROXMOX_VE_ENDPOINT` and
            others, as bpg names them); its values never leave the process.
        journal: The store where guests are written down before they are created (see `journal`); without one
            a run that is killed cannot find again what it was making.
        state: The name of the state that the engine works on, to tell its guests from those of others.
        logins: The logins to nodes, by their names; the provider block says how to log in to others.
        other_login: The login to nodes without one, but for the address.
        folder: Where the engine runs, from which the relative paths of a configuration count; the current
            folder when absent.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    journal: Objects | None = None
    journal_prefix: str = "journal/"
    state: str = ""
    folder: Path | None = None
    logins: Mapping[str, Host] = field(default_factory=dict)
    other_login: Host | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProvider:
    """A provider that answers.

    Attributes:
        reattach: The value of `TF_REATTACH_PROVIDERS` for an engine that is to use it.
        journal: What was created and may not be in the engine's state yet. Call `confirm_all` on it when the
            engine has ended well; what is left in `entries` is taken over by the next run.
        begin: Begins to load what answers, as the next thing that the event loop does. To be called when an
            engine is about to be started, which takes its time too; else its first call waits for it.
        registry: Gives everything that the provider has.
        expected: What the configuration says of resources that are about to be imported, by type and import
            id. Proxmox does not keep all of it: an import begins with this, and reads the rest.
        waits: Tells what the guests that are being changed wait for.
        client: Gives the client of the cluster, once an engine has said which one; None before.
        sessions: Gives the sessions of all clusters that an engine has configured.
    """

    reattach: str
    journal: Journal
    begin: Callable[[], None]
    registry: Callable[[], Registry]
    expected: dict[tuple[str, str], Object] = field(default_factory=dict)
    waits: GuestWaits = field(default_factory=GuestWaits)
    client: Callable[[], Client | None] = lambda: None
    sessions: Callable[[], tuple[Session, ...]] = lambda: ()

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """What its resources look like, by type."""
        return _Schemas(self.registry())


@contextlib.asynccontextmanager
async def serve(options: Options | None = None) -> AsyncIterator[RunningProvider]:
    """Serve the provider for the length of the block, on a socket that only this user can reach."""
    chosen = options or Options()
    with tempfile.TemporaryDirectory(prefix="stackyard-provider-", dir=_find_short_folder()) as folder:
        answering = _ProviderServer(chosen, folder)
        try:
            yield RunningProvider(
                reattach=_reattach(answering.path),
                journal=answering.journal,
                begin=answering.wanted.set,
                registry=answering.registry,
                expected=answering.expected,
                waits=answering.waits,
                client=answering.find_client,
                sessions=answering.list_sessions,
            )
        finally:
            await answering.end()


class _Schemas(Mapping[str, "Schema"]):
    """The schemas of resources by type, each read when it is asked for."""

    def __init__(self, registry: Registry) -> None:
        self._resources = registry.resources

    def __getitem__(self, name: str) -> Schema:
        return self._resources[name].schema

    def __iter__(self) -> Iterator[str]:
        return iter(self._resources)

    def __len__(self) -> int:
        return len(self._resources)


class _ProviderServer:
    """The server behind the socket, started when an engine needs it.

    Args:
        options: How.
        folder: Where its sockets are.
    """

    def __init__(self, options: Options, folder: str) -> None:
        self.path = os.path.join(folder, "socket")
        self.journal = Journal(options.journal, options.state, options.journal_prefix)
        self.registry = functools.cache(_load_registry)
        self.expected: dict[tuple[str, str], Object] = {}
        self.waits = GuestWaits()
        self.wanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._options = options
        self._behind = os.path.join(folder, "behind")
        self._sessions: Sessions | None = None
        self._lazy_socket = LazySocket(self.path, self.wanted.set)
        self._task = asyncio.create_task(self._answer())

    async def _answer(self) -> None:
        try:
            await self.wanted.wait()
            if not self._ended.is_set():
                async with self._listen():
                    self._lazy_socket.open(self._behind)
                    # The engine is still starting: what most configurations have is loaded in the meantime.
                    for name in _USUAL:
                        await asyncio.sleep(0)
                        self.registry().resources[name]
                    await self._ended.wait()
        finally:
            # An engine that waits for what could not be loaded has to be told.
            await self._lazy_socket.close()

    @contextlib.asynccontextmanager
    async def _listen(self) -> AsyncIterator[None]:
        from stackyard.provider.plugin import listen  # lazy: HTTP/2 and the messages cost a tenth of a second
        from stackyard.provider.servicer import Servicer  # lazy: as above
        from stackyard.provider.sessions import Sessions  # lazy: as above

        sessions = Sessions(self._make_session)
        self._sessions = sessions
        servicer = Servicer(self.registry(), sessions, self._options.environment)
        try:
            async with listen(servicer, self._behind, grace_s=_GRACE_S):
                try:
                    yield
                finally:
                    sessions.stop()
        finally:
            await servicer.finish(_GRACE_S)
            await sessions.close()

    def _make_session(self, endpoint: str) -> Session:
        from stackyard.provider.session import Session  # lazy: as above

        # The cluster of the environment has the entries without a scope; others may have the same names.
        home = self._options.environment.get("PROXMOX_VE_ENDPOINT")
        journal = self.journal if endpoint in ("", home) else self.journal.within(endpoint)
        session = Session(journal, self._options.folder)
        # A node of another cluster may have the name of one that we have a login for.
        if endpoint == home or not home:
            session.logins, session.other_login = self._options.logins, self._options.other_login
        session.expected, session.waits = self.expected, self.waits
        return session

    def find_client(self) -> Client | None:
        """Return the client of the cluster that was configured first, once an engine has said which one."""
        first = None if self._sessions is None else self._sessions.first
        return None if first is None else first.client

    def list_sessions(self) -> tuple[Session, ...]:
        """Return the sessions of all clusters that an engine has configured."""
        return () if self._sessions is None else self._sessions.configured

    async def end(self) -> None:
        """Stop answering; what is being applied is brought to its end.

        Raises:
            Exception: It could not be loaded.
        """
        self._ended.set()
        self.wanted.set()
        await self._task


def _load_registry() -> Registry:
    from stackyard.provider import registry  # lazy: every resource, and the facts about it

    return registry.load()


def _find_short_folder() -> str | None:
    """Return where to make the folder of the socket: its path may have no more than a hundred bytes."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual)) < _LONGEST_FOLDER_BYTES else "/tmp"  # noqa: S108 - made for us alone


def _reattach(path: str) -> str:
    address: dict[str, Any] = {
        "Protocol": "grpc",
        "ProtocolVersion": _PROTOCOL,
        "Pid": os.getpid(),
        # The engine leaves a provider under test running when it ends.
        "Test": True,
        "Addr": {"Network": "unix", "String": path},
    }
    return json.dumps({_ADDRESS: address})
