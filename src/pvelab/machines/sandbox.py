"""Guests in a sandbox: real programs in a root directory of the guest's own."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import uuid
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from pvelab.machines import pipes
from pvelab.machines.bubblewrap import Bubblewrap, Layout
from pvelab.machines.guest.names import NODE_SHIMS, SHIMS
from pvelab.machines.init_link import InitLink
from pvelab.machines.machine import Endpoint, Execution, Kind, MachineError, Terminal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pvelab.machines.init_link import InitSession
    from pvelab.machines.machine import Streams
    from pvelab.machines.roots import Roots
    from stackyard.base.process import Attached, Stream

__all__ = ["Network", "SandboxMachine"]

_BOOT_TIMEOUT_S = 60.0
_CLOUD_INIT_WAIT_S = 30.0
# How long what a program left in the background may hold on to its output.
_LAST_WORDS_S = 1.0
_LETTING_GO_S = 5.0
_MOST_OUTPUT = 64 * 2**20 + 1
_MOST_COMPLAINT = 64 * 2**10
_FILE_S = 120.0
_CANNOT = 126


class Network(Protocol):
    """What is behind the network interfaces of a guest."""

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Return a socket that is connected to what listens on a port in the guest."""
        ...

    def close(self) -> None:
        """Let go of the guest."""
        ...


class SandboxMachine:
    """The inside of one guest.

    Args:
        vmid: The guest.
        roots: Where its root directory is.
        bubblewrap: What makes sandboxes here.
        facts: Tells what the guest knows of itself when it boots: name, addresses, cloud-init data.
        on_question: Called with the user number and the question of a program in the guest.
        on_network: Called with the socket behind the guest's network interfaces; returns what serves it.
    """

    def __init__(
        self,
        vmid: int,
        roots: Roots,
        bubblewrap: Bubblewrap,
        *,
        facts: Callable[[], Mapping[str, Any]],
        on_question: Callable[[int, Mapping[str, Any]], Awaitable[Any]],
        on_network: Callable[[socket.socket], Network],
    ) -> None:
        self._vmid = vmid
        self._roots = roots
        self._bubblewrap = bubblewrap
        self._facts = facts
        self._on_question = on_question
        self._on_network = on_network
        self._booting: asyncio.Task[None] | None = None
        self._is_over = False
        self._link: InitLink | None = None
        self._network: Network | None = None
        self._init: Attached | None = None
        self._applying: asyncio.Task[int] | None = None
        self._runs = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._said: deque[str] = deque(maxlen=20)

    @property
    def kind(self) -> Kind:
        """A sandbox."""
        return Kind.SANDBOX

    @property
    def has_booted(self) -> bool:
        """Whether it is up."""
        return self._booting is not None and self._booting.done() and not self._is_over

    async def boot(self) -> None:
        """Start its init and let cloud-init do its work, once."""
        if self._is_over:
            raise MachineError("The guest has stopped.")
        if self._booting is None:
            self._booting = asyncio.create_task(self._boot())
        # Anyone who gives up waiting does not stop the boot for the others.
        await asyncio.shield(self._booting)

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Run a program to its end."""
        await self.boot()
        return await self._run(wanted, streams)

    async def read_file(self, path: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a file."""
        return await self._file(("read", path, str(limit)), b"", limit)

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file."""
        await self._file(("write", path), content)

    async def users(self) -> tuple[str, ...]:
        """Return the users that have a shell."""
        return tuple(await self._ask(do="users") or ())

    async def authorized_keys(self, user: str) -> tuple[str, ...]:
        """Return the lines of a user's file."""
        return tuple(await self._ask(do="keys", user=user) or ())

    async def accepts_password(self, user: str, password: str) -> bool:
        """Ask the guest, whose sshd_config and shadow file count."""
        return bool(await self._ask(do="password", user=user, password=password))

    async def host_keys(self) -> tuple[str, ...]:
        """Return the keys that cloud-init was given."""
        await self.boot()
        found = self._facts().get("host_keys") or ()
        return tuple(str(key) for key in found)

    async def endpoint(self, port: int) -> Endpoint | None:
        """Return nothing: the lab itself answers port 22."""
        del port
        return None

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Connect to what listens in the guest."""
        await self.boot()
        if self._network is None:
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))
        return await self._network.dial(port, source)

    async def stop(self) -> None:
        """End it."""
        await self.kill()

    async def kill(self) -> None:
        """End it at once."""
        self._is_over = True
        if self._booting is not None and not self._booting.done():
            self._booting.cancel()
            await asyncio.wait({self._booting})
        if self._network is not None:
            self._network.close()
        if self._link is not None:
            self._link.close()
        if self._init is not None:
            await self._init.end()
        if self._applying is not None:
            # It has ended with the guest, in whatever way.
            await asyncio.gather(self._applying, return_exceptions=True)
        # Anyone who ran something lets go of its pipes; a client that does not listen must not keep us.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _LETTING_GO_S)
        await asyncio.sleep(0)

    async def _boot(self) -> None:
        facts = self._facts()
        folder = self._roots.of(self._vmid, self._bubblewrap)
        layout = Layout(
            root=folder / "root",
            local=folder / "local",
            shim=self._roots.shim(),
            names=(*SHIMS, *(NODE_SHIMS if facts.get("is_node") else ())),
            boot_id=_new_boot_id(folder),
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        link = self._link = InitLink(ours, self._on_question, self._plug_in)
        try:
            with theirs:
                self._init = await self._bubblewrap.start_init(
                    layout, str(facts["hostname"]), theirs, self._keep_line
                )
            await link.tell({key: value for key, value in facts.items() if key not in ("cloud", "host_keys")})
            async with asyncio.timeout(_BOOT_TIMEOUT_S):
                await link.up
            await self._apply(facts)
        except (MachineError, TimeoutError) as err:
            raise MachineError(f"Guest {self._vmid} did not boot: {' '.join(self._said) or err}") from err

    async def _apply(self, facts: Mapping[str, Any]) -> None:
        """Let cloud-init, or what Proxmox does to a container, work on the guest."""
        wanted = Execution(argv=("cloud-init", "lab-apply"))
        unread = _OutputBuffer(data=_Writer(None), complaint=_Writer(None))
        streams = _Streams(orjson.dumps(facts["cloud"]), unread)
        self._applying = asyncio.create_task(self._run(wanted, streams))
        # Work that takes long continues while people log in, as on a real guest.
        await asyncio.wait({self._applying}, timeout=_CLOUD_INIT_WAIT_S)

    def _plug_in(self, sock: socket.socket) -> None:
        if self._is_over:
            sock.close()
        else:
            self._network = self._on_network(sock)

    def _keep_line(self, _stream: Stream, line: str) -> None:
        self._said.append(line)

    async def _ask(self, **message: Any) -> Any:
        await self.boot()
        return await self._require_link().ask(message)

    def _require_link(self) -> InitLink:
        if self._link is None:
            raise MachineError("The guest has stopped.")
        return self._link

    async def _run(self, wanted: Execution, streams: Streams) -> int:
        self._runs += 1
        self._idle.clear()
        try:
            if wanted.terminal is not None:
                return await self._run_on_terminal(wanted, wanted.terminal, streams)
            return await self._run_on_pipes(wanted, streams)
        finally:
            self._runs -= 1
            if not self._runs:
                self._idle.set()

    async def _run_on_pipes(self, wanted: Execution, streams: Streams) -> int:
        ends = [pipes.pipe() for _ in range(3)]
        theirs = (ends[0][0], ends[1][1], ends[2][1])
        try:
            session = await self._require_link().start(_message(wanted), theirs)
        except BaseException:
            for number in (ends[0][1], ends[1][0], ends[2][0]):
                os.close(number)
            raise
        finally:
            for number in theirs:
                os.close(number)
        feeding = asyncio.create_task(pipes.feed(streams.stdin, ends[0][1]))
        draining = [
            asyncio.create_task(pipes.drain(ends[1][0], streams.stdout)),
            asyncio.create_task(pipes.drain(ends[2][0], streams.stderr)),
        ]
        return await self._finish(session, feeding, draining, streams)

    async def _run_on_terminal(self, wanted: Execution, terminal: Terminal, streams: Streams) -> int:
        session = await self._require_link().start(_message(wanted), ())
        try:
            near = await session.started
        except MachineError as err:
            await streams.stderr.write(f"{err.detail}\n".encode())
            return _CANNOT
        if near is None:
            raise MachineError("The guest gave no terminal.")
        terminal.attach(os.dup(near))
        feeding = asyncio.create_task(pipes.feed(streams.stdin, os.dup(near)))
        draining = [asyncio.create_task(pipes.drain(near, streams.stdout))]
        try:
            return await self._finish(session, feeding, draining, streams)
        finally:
            terminal.detach()

    async def _finish(
        self,
        session: InitSession,
        feeding: asyncio.Task[None],
        draining: list[asyncio.Task[None]],
        streams: Streams,
    ) -> int:
        try:
            waiting: set[asyncio.Future[Any]] = {session.ended, *draining}
            # An output that no one takes any more ends the program too.
            while not session.ended.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done - {session.ended}:
                    one.result()
            status = session.ended.result()
            await asyncio.wait(draining, timeout=_LAST_WORDS_S)
            if session.started.done() and session.started.exception() is not None:
                await streams.stderr.write(f"{session.started.exception()}\n".encode())
            return status
        finally:
            if not session.ended.done():
                await self._require_link().signal(session, signal.SIGKILL)
            for task in (feeding, *draining):
                task.cancel()
            await asyncio.wait({feeding, *draining})
            for task in (feeding, *draining):
                # What a stream of the client fails with has been raised already, or is of no interest.
                with contextlib.suppress(asyncio.CancelledError):
                    task.exception()

    async def _file(self, words: tuple[str, ...], content: bytes, limit: int = 0) -> bytes:
        # The guest may have put another program in its place: it gets neither more room nor more time.
        heard = _OutputBuffer(data=_Writer(min(limit, _MOST_OUTPUT)), complaint=_Writer(_MOST_COMPLAINT))
        wanted = Execution(argv=("lab-file", *words))
        await self.boot()
        try:
            async with asyncio.timeout(_FILE_S):
                status = await self._run(wanted, _Streams(content, heard))
        except TimeoutError as err:
            raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), words[1]) from err
        if status:
            said = bytes(heard.complaint.kept).decode(errors="replace").strip()
            number = int(said) if said.isascii() and said.isdigit() and len(said) < 4 else errno.EIO
            raise OSError(number, os.strerror(number), words[1])
        return bytes(heard.data.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutputBuffer:
    """Keeps what a program writes."""

    data: _Writer
    complaint: _Writer


class _Streams:
    """Streams of bytes that are there already, and of what is heard."""

    def __init__(self, content: bytes, heard: _OutputBuffer) -> None:
        self._content = content
        self._heard = heard

    @property
    def stdin(self) -> _Reader:
        return _Reader(self._content)

    @property
    def stdout(self) -> _Writer:
        return self._heard.data

    @property
    def stderr(self) -> _Writer:
        return self._heard.complaint


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def read(self) -> bytes:
        data, self._content = self._content, b""
        return data


class _Writer:
    """Keeps so many bytes, and more end the program; None keeps nothing."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.kept = bytearray()

    async def write(self, data: bytes) -> None:
        if self._most is None:
            return
        if len(self.kept) + len(data) > self._most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        self.kept += data


def _new_boot_id(folder: Path) -> Path:
    """Write which boot this is beside the root directory of a guest, where it cannot change it."""
    path = folder / "boot_id"
    path.write_text(f"{uuid.uuid4()}\n")
    path.chmod(0o644)
    return path


def _message(wanted: Execution) -> dict[str, Any]:
    terminal = wanted.terminal
    return {
        "argv": wanted.argv,
        "line": wanted.line,
        "user": wanted.user,
        "env": dict(wanted.env),
        "cwd": wanted.cwd,
        "terminal": None
        if terminal is None
        else {"name": terminal.name, "columns": terminal.columns, "rows": terminal.rows},
    }
