"""Port 22 of guests: an SSH server for each connection, with the guest's host key, users and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncssh

from stackyard.lab.ssh.accounts import accounts_of
from stackyard.lab.ssh.inside import guest_shell
from stackyard.lab.ssh.keys import guest_host_key, is_authorized
from stackyard.lab.ssh.sessions import run_session, server_options

if TYPE_CHECKING:
    import socket

    from stackyard.lab.ssh.accounts import Account
    from stackyard.lab.store import Document
    from stackyard.lab.world import World

__all__ = ["GuestPorts"]


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
        """Run the SSH server of a guest on one end of a socket pair, until the connection ends."""
        vmid = int(guest["vmid"])
        connection = await asyncssh.run_server(
            sock,
            config=None,
            server_factory=lambda: _GuestLogin(self._world, vmid),
            server_host_keys=[guest_host_key(self._world, guest)],
            process_factory=lambda process: self._run(process, vmid),
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

    async def _run(self, process: asyncssh.SSHServerProcess[bytes], vmid: int) -> None:
        guest = self._world.guests.get(vmid)
        if guest is not None:
            await run_session(process, guest_shell(guest, str(process.get_extra_info("username"))))

    def _guest_changed(self, key: str, _old: Document | None, new: Document | None) -> None:
        if new is None or new["status"] != "running":
            for connection in self._connections.pop(int(key), ()):
                connection.abort()


class _GuestLogin(asyncssh.SSHServer):
    """Lets in the users of one guest."""

    def __init__(self, world: World, vmid: int) -> None:
        self._world = world
        self._vmid = vmid

    def password_auth_supported(self) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        account = self._accounts().get(username)
        return account is not None and account.fits(password)

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        account = self._accounts().get(username)
        return account is not None and is_authorized(key, account.keys)

    def _accounts(self) -> dict[str, Account]:
        guest = self._world.guests.get(self._vmid)
        return {} if guest is None else accounts_of(self._world, guest)
