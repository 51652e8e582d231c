"""The SSH servers of the nodes: who gets in, what a command runs in, where a forwarded connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Any

import asyncssh
from asyncssh.forward import SSHForwarder

from pvelab.faults.faults import Point
from pvelab.nested.reach import connect, locate
from pvelab.server.dispatch import ConnectionDropped
from pvelab.server.journal import is_secret
from pvelab.server.problems import PveError
from pvelab.ssh.boot_units import list_boot_units
from pvelab.ssh.files import NodeFiles
from pvelab.ssh.guests import GuestPorts
from pvelab.ssh.keys import is_authorized
from pvelab.ssh.programs import builtin, text
from pvelab.ssh.programs.copies import copy_programs
from pvelab.ssh.programs.proxmox import proxmox_programs
from pvelab.ssh.programs.system import ShellFileAccess, system_programs
from pvelab.ssh.programs.units import unit_programs
from pvelab.ssh.sessions import run_session, server_options
from pvelab.ssh.sftp import NodeSftp
from pvelab.ssh.shell import Shell
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, Streams
from pvelab.ssh.shell_session import ShellSession
from pvelab.ssh.system_files import read_system_file
from pvelab.ssh.timers import Timers
from pvelab.world.access.tickets import password_fits
from stackyard.base.redaction import MASK

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Mapping

    from pvelab.nested.network_location import NetworkLocation
    from pvelab.server.dispatch import Dispatcher
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["serve_ssh"]

_OPTION = re.compile(r"(?<![\w-])(--?)([A-Za-z][A-Za-z0-9-]*)([= ])('[^']*'|\"[^\"]*\"|\S+)")
_UNREACHABLE = asyncssh.OPEN_CONNECT_FAILED


@contextlib.asynccontextmanager
async def serve_ssh(
    world: World,
    dispatcher: Dispatcher,
    listening: Mapping[str, socket.socket],
    *,
    host_key: bytes,
    authorized: tuple[str, ...],
) -> AsyncIterator[None]:
    """Serve SSH until the end of the block.

    Args:
        world: The lab.
        dispatcher: What answers the calls that commands make.
        listening: The socket of each node, which is then ours.
        host_key: The private key of all nodes, as OpenSSH keeps it.
        authorized: Who may log in as root with a key: lines as of an authorized_keys file.
    """
    side = _SshSide(world, dispatcher, asyncssh.import_private_key(host_key), authorized)
    try:
        for node, sock in listening.items():
            await side.listen(node, sock)
        yield
    finally:
        await side.close()


class _SshSide:
    """All nodes together."""

    def __init__(
        self, world: World, dispatcher: Dispatcher, host_key: asyncssh.SSHKey, authorized: tuple[str, ...]
    ) -> None:
        self.world = world
        self.dispatcher = dispatcher
        self.guests = GuestPorts(world)
        self.timers = Timers(world.clock, self._run_timer)
        self.connections: dict[asyncssh.SSHServerConnection, str] = {}
        self.authorized = authorized
        self._host_key = host_key
        self._acceptors: list[asyncssh.SSHAcceptor] = []
        world.store.watch("nodes", self._node_changed)
        world.nest.answer_guest = self.answer_guest
        world.nest.run_command = self.run_command
        world.cluster.run_boot_units = self._run_boot_units

    async def listen(self, node: str, sock: socket.socket) -> None:
        """Serve a node on a socket that listens."""
        self._acceptors.append(await asyncssh.listen(sock=sock, config=None, **self._options(node)))

    async def answer_guest(self, guest: Document, sock: socket.socket) -> None:
        """Serve port 22 of a guest on one end of a socket pair, until the connection ends."""
        # A client that leaves during the handshake is no failure of ours.
        with contextlib.suppress(asyncssh.Error, OSError):
            connection = await self.guests.answer(guest, sock)
            try:
                await connection.wait_closed()
            finally:
                self.guests.forget(guest, connection)

    async def run_command(self, user: str, argv: list[str]) -> tuple[int, bytes, bytes]:
        """Run a program of the first node's shell for someone who is logged in there by other means."""
        return await self._run_at(self.world.cluster.local(), user, argv)

    async def _run_timer(self, node: str, argv: list[str]) -> None:
        """Run what a timer of a node is for."""
        status, _, _ = await self._run_at(node, "root", argv)
        self._write_down("TIMER", " ".join(argv), {"node": node}, user="root", status=status)

    async def _run_boot_units(self, node: str) -> None:
        """Run the services that start before the network of a node that boots."""
        for unit in list_boot_units(self.world, node):
            if unit.condition and read_system_file(self.world, node, unit.condition) is None:
                continue
            status, _, _ = await self._run_at(node, "root", unit.command)
            self._write_down("UNIT", unit.name, {"node": node}, user="root", status=status)

    async def _run_at(self, node: str, user: str, argv: list[str]) -> tuple[int, bytes, bytes]:
        out, err = CaptureSink(), CaptureSink()
        streams = Streams(stdin=BytesSource(b""), stdout=out, stderr=err)
        try:
            status = await self._shell(node, user).call(argv, streams)
        except PveError as refused:
            return 255, out.data, err.data + f"{refused.text}\n".encode()
        return status, out.data, err.data

    async def close(self) -> None:
        """Stop listening and cut all connections."""
        await self.timers.close()
        for acceptor in self._acceptors:
            acceptor.close()
        self.guests.close()
        open_ones = list(self.connections)
        for connection in open_ones:
            connection.abort()
        for acceptor in self._acceptors:
            await acceptor.wait_closed()
        for connection in open_ones:
            await connection.wait_closed()

    def _options(self, node: str) -> dict[str, Any]:
        return {
            "server_factory": lambda: _NodeLogin(self, node),
            "server_host_keys": [self._host_key],
            "process_factory": lambda process: self._run(process, node),
            "sftp_factory": lambda channel: self._sftp(channel, node),
            **server_options(),
        }

    async def _run(self, process: asyncssh.SSHServerProcess[bytes], node: str) -> None:
        user = str(process.get_extra_info("username"))
        command = process.command or ""
        try:
            await self.dispatcher.strike(Point.BEFORE_WORK, "SSH", command, node)
            status = await run_session(
                process,
                self._shell(node, user),
                before_answer=lambda: self.dispatcher.strike(Point.AFTER_WORK, "SSH", command, node),
            )
        except PveError as fault:
            status = 255
            process.stderr.write(f"{fault.text}\n".encode())
            process.exit(status)
        except ConnectionDropped:
            status = None
            process.get_extra_info("connection").abort()
        self._write_down("SSH", _mask_secrets(command), {"node": node}, user=user, status=status)

    def _shell(self, node: str, user: str) -> Shell:
        files = NodeFiles(self.world, node)
        session = ShellSession(
            world=self.world, dispatcher=self.dispatcher, node=node, user=user, files=files
        )
        programs = {
            **builtin.PROGRAMS,
            **text.PROGRAMS,
            **system_programs(session),
            **copy_programs(files),
            **unit_programs(session, self.timers),
            **proxmox_programs(session),
        }
        home = "/root" if session.is_root else f"/home/{user}"
        return Shell(programs, ShellFileAccess(files, as_root=session.is_root), {"HOME": home, "USER": user})

    def _sftp(self, channel: asyncssh.SSHServerChannel[bytes], node: str) -> NodeSftp:
        user = str(channel.get_extra_info("username"))

        def note(operation: str, path: str) -> None:
            self._write_down("SFTP", path, {"node": node, "operation": operation}, user=user, status=0)

        return NodeSftp(channel, NodeFiles(self.world, node), note, writable=user == "root")

    def _write_down(
        self, method: str, path: str, parameters: Mapping[str, Any], *, user: str, status: int | None
    ) -> None:
        self.world.journal.add(
            time=self.world.clock.now(),
            method=method,
            path=path,
            parameters=parameters,
            user=f"{user}@pam",
            status=-1 if status is None else status,
            reason="connection lost" if status is None else f"exit status {status}",
        )

    def _node_changed(self, key: str, _old: Document | None, new: Document | None) -> None:
        if new is None or not new.get("online", 1):
            if new is None or not new.get("cut_off"):
                self.timers.stop_all(key)
            for connection in [found for found, node in self.connections.items() if node == key]:
                connection.abort()


class _NodeLogin(asyncssh.SSHServer):
    """Lets in the users of the node's system, and forwards to guests and nodes."""

    def __init__(self, side: _SshSide, node: str) -> None:
        self._side = side
        self._world = side.world
        self._node = node
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        if not self._world.cluster.is_online(self._node):
            conn.abort()
            return
        self._connection = conn
        self._side.connections[conn] = self._node

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._side.connections.pop(self._connection, None)

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        kept = self._world.store.get("shadow", f"{username}@pam")
        return bool(password) and kept is not None and password_fits(password, str(kept["hash"]))

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        kept = self._world.store.get("authorized_keys", username) or {"lines": ()}
        given = (*self._side.authorized, *self._world.owner_keys) if username == "root" else ()
        return is_authorized(key, (*given, *kept["lines"]))

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        """Forward to what guests and nodes answer on, of this lab and of those inside and around it."""
        try:
            place = locate(self._world, dest_host)
        except ValueError as err:
            raise asyncssh.ChannelOpenError(_UNREACHABLE, f"{dest_host}: Name or service not known") from err
        if place is None:
            raise asyncssh.ChannelOpenError(_UNREACHABLE, "No route to host")
        return _forward(place, dest_port)


async def _forward(place: NetworkLocation, port: int) -> SSHForwarder:
    """Carry bytes between a channel and a port of a guest or node."""
    try:
        sock = await connect(place, port)
        _, peer = await asyncio.get_running_loop().create_connection(SSHForwarder, sock=sock)
    except OSError as err:
        raise asyncssh.ChannelOpenError(_UNREACHABLE, err.strerror or str(err)) from err
    return SSHForwarder(peer)


def _mask_secrets(command: str) -> str:
    """Hide the values of options that are secret, such as `-cipassword`."""
    return _OPTION.sub(
        lambda found: f"{found[1]}{found[2]}{found[3]}{MASK}" if is_secret(found[2]) else found[0], command
    )
