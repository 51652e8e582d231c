"""Port 22 of guests: an SSH server with the guest's host key, users and keys, and the guest behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import asyncssh

from pvelab.machines.clouddata import cloud_data, list_host_keys
from pvelab.machines.machine import Execution, MachineError, Terminal
from pvelab.server.problems import PveError
from pvelab.ssh.keys import guest_host_key, is_authorized
from pvelab.ssh.sessions import ChannelSink, server_options

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Mapping

    from pvelab.machines.machine import GuestMachine
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["GuestPorts", "host_keys", "public_host_key"]

_CHUNK = 64 * 1024
_UNREACHED = 255
_SFTP = ("lab-sftp",)
_SFTP_VERSION = 3

Run = Callable[["asyncssh.SSHServerProcess[bytes]", "GuestMachine"], Awaitable[None]]


class GuestPorts:
    """Answers connections to guests, and cuts them when a guest stops.

    Args:
        world: The lab.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._connections: dict[int, set[asyncssh.SSHServerConnection]] = {}
        world.store.watch("guests", self._guest_changed)

    async def answer(self, guest: Document, sock: socket.socket) -> asyncssh.SSHServerConnection:
        """Run the SSH server of a guest on one end of a socket pair, until the connection ends.

        Raises:
            OSError: The guest stopped, or does not come up.
        """
        try:
            machine = await self._world.machines.of(guest)
            keys = await host_keys(self._world, guest, machine)
        except (PveError, MachineError) as err:
            sock.close()
            raise ConnectionRefusedError(str(err)) from err
        except BaseException:
            sock.close()
            raise
        vmid = int(guest["vmid"])
        connection = await asyncssh.run_server(
            sock,
            config=None,
            server_factory=lambda: _GuestLogin(machine, self._run, self._world.owner_keys),
            server_host_keys=keys,
            **server_options(),
        )
        self._connections.setdefault(vmid, set()).add(connection)
        return connection

    def forget(self, guest: Document, connection: asyncssh.SSHServerConnection) -> None:
        """Note that a connection has ended."""
        self._connections.get(int(guest["vmid"]), set()).discard(connection)

    def close(self) -> None:
        """Cut all connections."""
        for connections in self._connections.values():
            for connection in connections:
                connection.abort()

    async def _run(self, process: asyncssh.SSHServerProcess[bytes], machine: GuestMachine) -> None:
        session = _Session(process)
        running = asyncio.create_task(session.run(machine))
        leaving = asyncio.create_task(process.wait_closed())
        # A client that goes away takes along what it started.
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (running, leaving):
            task.cancel()
        await asyncio.gather(running, leaving, return_exceptions=True)

    def _guest_changed(self, key: str, old: Document | None, new: Document | None) -> None:
        restarted = old is not None and new is not None and _boot_of(old) != _boot_of(new)
        if new is None or new["status"] != "running" or restarted:
            for connection in self._connections.pop(int(key), ()):
                connection.abort()


async def host_keys(world: World, guest: Document, machine: GuestMachine) -> list[asyncssh.SSHKey]:
    """Return the host keys of a guest: those that it was given, or one that the lab keeps for it."""
    return _import_keys(await machine.host_keys()) or [guest_host_key(world, guest)]


def public_host_key(world: World, guest: Document) -> str:
    """Return the host key of a guest as known_hosts has it, without starting anything."""
    keys = list_host_keys(cloud_data(world, guest))
    chosen = (_import_keys(keys) or [guest_host_key(world, guest)])[0]
    return chosen.export_public_key().decode().strip()


def _import_keys(texts: tuple[str, ...]) -> list[asyncssh.SSHKey]:
    found = []
    for text in texts:
        try:
            found.append(asyncssh.import_private_key(text))
        except asyncssh.KeyImportError:
            # As with sshd, a key that cannot be read is none.
            continue
    return found


class _Session:
    """One program of one client."""

    def __init__(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._process = process
        self._terminal: Terminal | None = None
        if process.term_type is not None:
            columns, rows = process.term_size[:2]
            self._terminal = Terminal(process.term_type, columns or 80, rows or 24)
        self.stdin = self
        self.stdout = ChannelSink(process.stdout)
        self.stderr = ChannelSink(process.stderr)

    async def run(self, machine: GuestMachine) -> None:
        """Run it, and tell the client how it ended."""
        process = self._process
        user = str(process.get_extra_info("username"))
        is_sftp = process.subsystem == "sftp"
        wanted = Execution(
            argv=_SFTP if is_sftp else None,
            line=process.command,
            user=user,
            env=_environment(process),
            terminal=self._terminal,
        )
        try:
            status = await machine.run(wanted, self)
        except MachineError as err:
            process.stderr.write(f"{err.detail}\n".encode())
            status = _UNREACHED
        except (asyncssh.Error, ConnectionError):
            # No one is there to be told.
            return
        process.exit(status)

    async def read(self) -> bytes:
        """Return what the client sends next; changes of its window are followed on the way."""
        while True:
            try:
                return await self._process.stdin.read(_CHUNK)
            except asyncssh.TerminalSizeChanged as change:
                if self._terminal is not None:
                    self._terminal.resize(change.width, change.height)
            except (asyncssh.BreakReceived, asyncssh.SignalReceived):
                continue


class _GuestProcess(asyncssh.SSHServerProcess[bytes]):
    """A session whose files are served from inside the guest, where the library would serve its own."""

    def subsystem_requested(self, subsystem: str) -> bool:
        return subsystem == "sftp"

    def session_started(self) -> None:
        channel, connection = self.channel, self.channel.get_connection()
        reader: asyncssh.SSHReader[bytes] = asyncssh.SSHReader(self, channel)
        writers = [asyncssh.SSHWriter(self, channel, kind) for kind in (None, asyncssh.EXTENDED_DATA_STDERR)]
        work = self._start_process(reader, *writers)
        if work is not None:
            connection.create_task(work)


class _GuestLogin(asyncssh.SSHServer):
    """Lets in the users of one guest, and the owner of the lab."""

    def __init__(self, machine: GuestMachine, run: Run, owner_keys: Collection[str]) -> None:
        self._machine = machine
        self._run = run
        self._owner_keys = owner_keys

    def session_requested(self) -> asyncssh.SSHServerProcess[bytes]:
        return _GuestProcess(lambda process: self._run(process, self._machine), None, _SFTP_VERSION, False)

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_password(self, username: str, password: str) -> bool:
        try:
            return await self._machine.accepts_password(username, password)
        except MachineError:
            return False

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        try:
            if is_authorized(key, self._owner_keys):
                return username == "root" or username in await self._machine.users()
            return is_authorized(key, await self._machine.authorized_keys(username))
        except MachineError:
            return False


def _environment(process: asyncssh.SSHServerProcess[bytes]) -> Mapping[str, str]:
    """Return what sshd would let a client set, and what it sets itself."""
    sent: Mapping[Any, Any] = process.env
    kept = {str(name): str(value) for name, value in sent.items() if str(name).startswith(("LANG", "LC_"))}
    host, port = "10.31.0.1", 50022
    return {**kept, "SSH_CONNECTION": f"{host} {port} 10.31.0.2 22", "SSH_CLIENT": f"{host} {port} 22"}


def _boot_of(guest: Document) -> tuple[Any, Any]:
    return guest["started"], guest["run"].get("booting_since")
