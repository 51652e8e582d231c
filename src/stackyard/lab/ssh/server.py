"""The SSH servers of the nodes: who gets in, what a command runs in, where a forwarded connection ends."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
from typing import TYPE_CHECKING, Any

import asyncssh

from stackyard.lab.access.tickets import password_fits
from stackyard.lab.addresses import guest_at
from stackyard.lab.dispatch import ConnectionDropped
from stackyard.lab.faults import Point
from stackyard.lab.journal import is_secret
from stackyard.lab.problems import PveError
from stackyard.lab.ssh.files import NodeFiles
from stackyard.lab.ssh.guests import GuestPorts
from stackyard.lab.ssh.keys import is_authorized
from stackyard.lab.ssh.programs import builtin, text
from stackyard.lab.ssh.programs.proxmox import proxmox_programs
from stackyard.lab.ssh.programs.system import Door, system_programs
from stackyard.lab.ssh.seat import Seat
from stackyard.lab.ssh.sessions import run_session, server_options
from stackyard.lab.ssh.sftp import NodeSftp
from stackyard.lab.ssh.shell import Shell
from stackyard.redaction import MASK

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.lab.dispatch import Dispatcher
    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["serve_ssh"]

_SSH_PORT = 22
_CHUNK = 64 * 1024
_OPTION = re.compile(r"(--?)([A-Za-z][A-Za-z0-9-]*)([= ])('[^']*'|\"[^\"]*\"|\S+)")
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
        self.connections: dict[asyncssh.SSHServerConnection, str] = {}
        self.authorized = authorized
        self._host_key = host_key
        self._acceptors: list[asyncssh.SSHAcceptor] = []
        world.store.watch("nodes", self._node_changed)

    async def listen(self, node: str, sock: socket.socket) -> None:
        """Serve a node on a socket that listens."""
        self._acceptors.append(await asyncssh.listen(sock=sock, config=None, **self._options(node)))

    async def answer_node(self, node: str, sock: socket.socket) -> asyncssh.SSHServerConnection:
        """Run the server of a node on one end of a socket pair."""
        return await asyncssh.run_server(sock, config=None, **self._options(node))

    async def close(self) -> None:
        """Stop listening and cut all connections."""
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
            status = await run_session(process, self._shell(node, user))
        except PveError as fault:
            status = 255
            process.stderr.write(f"{fault.text}\n".encode())
            process.exit(status)
        except ConnectionDropped:
            status = None
            process.get_extra_info("connection").abort()
        self._write_down("SSH", _masked(command), {"node": node}, user=user, status=status)

    def _shell(self, node: str, user: str) -> Shell:
        files = NodeFiles(self.world, node)
        seat = Seat(world=self.world, dispatcher=self.dispatcher, node=node, user=user, files=files)
        programs = {**builtin.PROGRAMS, **text.PROGRAMS, **system_programs(seat), **proxmox_programs(seat)}
        home = "/root" if seat.is_root else f"/home/{user}"
        return Shell(programs, Door(files, as_root=seat.is_root), {"HOME": home, "USER": user})

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
        given = self._side.authorized if username == "root" else ()
        return is_authorized(key, (*given, *kept["lines"]))

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        """Forward to port 22 of a guest that runs, or of a node; to nothing else."""
        try:
            wanted = ipaddress.ip_address(dest_host)
        except ValueError as err:
            raise asyncssh.ChannelOpenError(_UNREACHABLE, f"{dest_host}: Name or service not known") from err
        guest = guest_at(self._world, str(wanted))
        node = next(
            (name for name, found in self._world.cluster.nodes().items() if found["ip"] == str(wanted)), None
        )
        if guest is None and (node is None or not self._world.cluster.is_online(node)):
            raise asyncssh.ChannelOpenError(_UNREACHABLE, "No route to host")
        if dest_port != _SSH_PORT:
            raise asyncssh.ChannelOpenError(_UNREACHABLE, "Connection refused")
        return _Forwarded(self._side, guest=guest, node=node).handle


class _Forwarded:
    """A forwarded connection: bytes carried between its channel and a server of our own."""

    def __init__(self, side: _SshSide, *, guest: Document | None, node: str | None) -> None:
        self._side = side
        self._guest = guest
        self._node = node

    async def handle(self, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
        """Carry bytes until either side ends."""
        near, far = socket.socketpair()
        near.setblocking(False)
        answering = asyncio.ensure_future(self._answer(far))
        stream, back = await asyncio.open_connection(sock=near)
        ways = {asyncio.ensure_future(_carry(*way)) for way in ((reader, back), (stream, writer))}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            back.close()
            writer.close()
            await asyncio.wait({answering, *ways})

    async def _answer(self, sock: socket.socket) -> None:
        # A client that leaves during the handshake is no failure of ours.
        with contextlib.suppress(asyncssh.Error, OSError):
            if self._guest is None:
                connection = await self._side.answer_node(str(self._node), sock)
                await connection.wait_closed()
                return
            connection = await self._side.guests.answer(self._guest, sock)
            try:
                await connection.wait_closed()
            finally:
                self._side.guests.forget(self._guest, connection)


async def _carry(source: Any, target: Any) -> None:
    with contextlib.suppress(asyncssh.Error, OSError):
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()


def _masked(command: str) -> str:
    """Hide the values of options that are secret, such as `-cipassword`."""
    return _OPTION.sub(
        lambda found: f"{found[1]}{found[2]}{found[3]}{MASK}" if is_secret(found[2]) else found[0], command
    )
