"""An inner host behind real SSH that needs no sandbox, and the outer run that delegates to it.

The machine answers the questions of the bootstrap as a Proxmox node does. What it does when it is asked to
run stackyard is for a test to say: run it, in a process of its own, or answer as a compromised host does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import re
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncssh
from tests.support.forking import Forked, fork_program

from stackyard.base import events
from stackyard.clients import ssh
from stackyard.operator.delegation.archive import Archive
from stackyard.operator.delegation.delegate import Delegated, DelegationContext, delegate
from stackyard.operator.delegation.offer import offer_store
from stackyard.operator.delegation.store_channel import OfferedStore
from stackyard.operator.outcome import Verb
from stackyard.operator.request import VerbRequest
from stackyard.sources.manifest.read import ManifestRequest, find_manifest
from stackyard.sources.site.load import Site
from stackyard.sources.store import ChosenStore

__all__ = ["INNER", "InnerMachine", "Outer", "answer", "inner_machine", "main"]

INNER = "inner100"
PATIENCE_S = 60.0
Process = asyncssh.SSHServerProcess[bytes]
Answering = Callable[[Process, str], Awaitable[None]]

_LIBRARY = platform.libc_ver()[1]
_STORAGE = '[{"storage": "local", "content": "images,import,iso,snippets,vztmpl"}]'
# What a node that is ready answers, by what is in the script; everything else ends well without a word.
_ANSWERS = {
    r"uname -m": f"{platform.machine()}\ninner\nglibc {_LIBRARY}\n/usr/bin/pvesh\n",
    r"wc -c <": "whole\n",
    r"ssh-keygen": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA inner\n",
    r"role list|user list|token list|acl list": "[]",
    r"token add": '{"value": "inner-token"}',
    r"/network --output": '[{"iface": "vmbr0"}]',
    r"/storage": _STORAGE,
    r"certificates/info": '[{"filename": "pve-ssl.pem", "fingerprint": "AA:BB"}]',
}


def answer(text: str | bytes, status: int = 0) -> Answering:
    """Return what writes a text and ends."""

    async def say(process: Process, script: str) -> None:
        if re.search(r"tar -xz?of - |tar -xof -;|python -I", script):
            await process.stdin.read()
        process.stdout.write(text if isinstance(text, bytes) else text.encode())
        process.exit(status)

    return say


class _Open(asyncssh.SSHServer):
    """Lets everybody in, and remembers the connections so that they can be cut."""

    def __init__(self, machine: InnerMachine) -> None:
        self._machine = machine

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._machine.connections.append(conn)

    def begin_auth(self, username: str) -> bool:
        return False


@dataclass(kw_only=True)
class InnerMachine:
    """The machine.

    Attributes:
        site: The folder of its site, for stackyard when it is run.
        env: What stackyard needs in its environment.
        answers: What scripts are answered, by a pattern in them; these go before what a node answers.
        instead: What happens when stackyard is started, where that is not run.
        port: Where its SSH server listens.
        scripts: Everything that was run.
        connections: Everybody who logged in.
        started: The processes of stackyard that were started, the last one last.
    """

    loop: asyncio.AbstractEventLoop
    site: Path = Path("/nonexistent")
    env: Mapping[str, str] = field(default_factory=dict)
    instead: Answering | None = None
    answers: dict[str, Answering] = field(default_factory=dict)
    port: int = 0
    scripts: list[str] = field(default_factory=list)
    connections: list[asyncssh.SSHServerConnection] = field(default_factory=list)
    started: list[Forked] = field(default_factory=list)

    async def serve(self, process: Process) -> None:
        """Do what one command says."""
        script = shlex.split(process.command or "")[-1]
        self.scripts.append(script)
        with contextlib.suppress(OSError, asyncssh.Error):
            await self._answering(script)(process, script)

    def _answering(self, script: str) -> Answering:
        if " inner-run " in script:
            return self.instead or self._run_stackyard
        for pattern, answering in self.answers.items():
            if re.search(pattern, script):
                return answering
        return answer(next((text for one, text in _ANSWERS.items() if re.search(one, script)), ""))

    async def _run_stackyard(self, process: Process, script: str) -> None:
        """Run the real program for the site; its input ends with the connection, as with any SSH server."""
        (order, order_end), (records, records_end) = os.pipe(), os.pipe()
        with open(os.devnull, "wb") as nothing:
            forked = fork_program(
                [*shlex.split(script)[2:-1], str(self.site)],
                streams=(order, records_end, nothing.fileno()),
                cwd=self.site,
                env={**os.environ, **self.env},
            )
        self.started.append(forked)
        os.close(order)
        os.close(records_end)
        reader = asyncio.StreamReader()
        pipe, _ = await self.loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(records, "rb", 0)
        )
        feeding = asyncio.create_task(_feed(process, order_end))
        try:
            while data := await reader.read(65536):
                with contextlib.suppress(OSError, asyncssh.Error):
                    process.stdout.write(data)
            status = await asyncio.to_thread(forked.wait)
        finally:
            pipe.close()
            feeding.cancel()
            await asyncio.wait({feeding})
        process.exit(status if status >= 0 else 128 - status)

    def cut(self) -> None:
        """End every connection without a word, from any thread."""

        def abort() -> None:
            for connection in self.connections:
                connection.abort()

        self.loop.call_soon_threadsafe(abort)

    def host(self, folder: Path) -> dict[str, Any]:
        """Return how to log in, as fields of `ssh.Host`."""
        return {"address": "127.0.0.1", "port": self.port, "known_hosts": str(folder / "known_hosts")}


async def _feed(process: Process, descriptor: int) -> None:
    """Give the program its input, which ends with the connection."""
    with os.fdopen(descriptor, "wb", 0) as stream, contextlib.suppress(OSError, asyncssh.Error):
        while data := await process.stdin.read(65536):
            stream.write(data)


@contextlib.contextmanager
def inner_machine(**settings: Any) -> Iterator[InnerMachine]:
    """Serve the machine from a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="inner-machine")
    thread.start()
    machine = InnerMachine(loop=loop, **settings)

    async def start() -> asyncssh.SSHAcceptor:
        return await asyncssh.create_server(
            lambda: _Open(machine),
            "127.0.0.1",
            0,
            server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
            process_factory=machine.serve,
            encoding=None,
        )

    async def stop(server: asyncssh.SSHAcceptor) -> None:
        server.close()
        for connection in machine.connections:
            connection.abort()
        await server.wait_closed()
        await asyncio.gather(*(one.wait_closed() for one in machine.connections))
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await loop.shutdown_default_executor()
        for forked in machine.started:
            # Nobody waits for a program whose connection was cut.
            forked.told.close()

    try:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE_S)
        machine.port = server.get_port()
        try:
            yield machine
        finally:
            asyncio.run_coroutine_threadsafe(stop(server), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@dataclass(frozen=True, kw_only=True)
class Outer:
    """An outer run: all that it needs to delegate, as plain values that go into another process.

    Attributes:
        site: The folder of its site.
        host: The outer host by its name in the site.
        inner: How to log in to the inner host, as fields of `ssh.Host`.
        outer: How to log in to the outer host.
        text: The manifest.
        runs_on: What the site of the inner host calls it.
        archive: The archive to send: its path, digest and size.
        address: Where the inner host is for its guests.
        store: The folder with the store that it offers; its own is used where none is.
    """

    site: str
    host: str
    inner: Mapping[str, Any]
    text: str
    outer: Mapping[str, Any] = field(default_factory=lambda: {"address": "192.0.2.1"})
    runs_on: str = INNER
    archive: tuple[str, str, int] = ("/nonexistent", "ab" * 32, 1)
    address: str = "10.0.12.5"
    verb: str = "create"
    silence_s: float = 60.0
    store: str = ""

    async def delegate(self, emit: events.Emit = events.ignore) -> Delegated:
        """Delegate in this process."""
        if not self.store:
            return await self._delegate(None, emit)
        with offer_store(ChosenStore(base=Path(self.store)), "deep", self.host, INNER) as offered:
            return await self._delegate(offered, emit)

    async def _delegate(self, offered: OfferedStore | None, emit: events.Emit) -> Delegated:
        site = Site.load(Path(self.site))
        manifest = find_manifest(site, ManifestRequest(text=self.text))
        subtree = manifest.subtree(INNER)
        path, digest, size = self.archive
        context = DelegationContext(
            site=site,
            host=self.host,
            inner=_host(self.inner),
            outer=_host(self.outer),
            request=VerbRequest(
                text=json.dumps(subtree.document()),
                host=self.runs_on,
                is_delegated=True,
                skip_preflight=True,
            ),
            archive=Archive(path=Path(path), digest=digest, size_bytes=size),
            offered=offered,
            patience_s=PATIENCE_S,
            beat_s=0.2,
            silence_s=self.silence_s,
        )
        return await delegate(
            Verb(self.verb), manifest.by_name[INNER], self.address, subtree=subtree, ctx=context, emit=emit
        )

    def begin(self, said: Path, env: Mapping[str, str]) -> Forked:
        """Delegate in a process of its own, which writes what became of it."""
        with said.open("w+b") as stream, open(os.devnull, "rb") as nothing:
            return fork_program(
                (json.dumps(self.__dict__, default=str),),
                streams=(nothing.fileno(), stream.fileno(), stream.fileno()),
                entry=f"{__name__}:main",
                env={**os.environ, **env},
            )


def _host(fields: Mapping[str, Any]) -> ssh.Host:
    known = fields.get("known_hosts")
    return ssh.Host(**{**fields, "known_hosts": None if known is None else Path(known)})


def main() -> None:
    """Delegate as the argument says, and say what became of it."""
    task = json.loads(sys.argv[1])
    outer = Outer(**{**task, "archive": tuple(task["archive"])})
    delegated = asyncio.run(outer.delegate())
    sys.stdout.write(json.dumps(delegated.outcome.as_json()))
    sys.exit(0 if delegated.outcome.success else 1)
