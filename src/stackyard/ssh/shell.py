"""A connection to a machine: commands and files."""

from __future__ import annotations

import contextlib
import posixpath
from typing import TYPE_CHECKING, Any, BinaryIO

import asyncssh

from stackyard.ssh.failures import HostKeyChangedError, RemoteCommandError, SshError, SshUnreachableError
from stackyard.ssh.known_hosts import KnownHosts, Trusting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.ssh.host import Host

__all__ = ["Shell", "connect"]

_QUOTED_CHARACTERS = 2000
_CHUNK_BYTES = 64 * 1024


class Shell:
    """A machine that we are logged in to."""

    def __init__(self, host: Host, connection: asyncssh.SSHClientConnection) -> None:
        self.host = host
        self._connection = connection

    async def run(self, command: str, *, stdin: bytes = b"", timeout_s: float | None = None) -> str:
        """Run a command and return everything that it wrote.

        Raises:
            RemoteCommandError: It ended with an error, which is quoted.
            SshError: The connection broke, or it took too long.
        """
        try:
            done = await self._connection.run(
                command, input=stdin, encoding=None, stderr=asyncssh.STDOUT, timeout=timeout_s
            )
        except (asyncssh.Error, OSError, TimeoutError) as err:
            raise SshError(f"A command on {self.host} did not end well: {_reason(err)}.") from err
        said = done.stdout.decode(errors="replace") if isinstance(done.stdout, bytes) else ""
        if done.exit_status != 0:
            quoted = said.strip()[-_QUOTED_CHARACTERS:] or "nothing"
            raise RemoteCommandError(
                f"A command on {self.host} ended with status {done.exit_status} and said: {quoted}",
                status=done.exit_status,
            )
        return said

    async def write_file(self, path: str, content: BinaryIO, *, mode: int | None = None) -> None:
        """Write a file over SFTP, with the folders above it.

        Raises:
            SshError: It cannot be written.
        """
        try:
            async with self._connection.start_sftp_client() as sftp:
                await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
                async with sftp.open(path, "wb") as remote:
                    while chunk := content.read(_CHUNK_BYTES):
                        await remote.write(chunk)
                if mode is not None:
                    await sftp.chmod(path, mode)
        except (asyncssh.Error, OSError) as err:
            raise SshError(f"Cannot write {path} on {self.host}: {_reason(err)}.") from err


@contextlib.asynccontextmanager
async def connect(host: Host) -> AsyncIterator[Shell]:
    """Log in for the length of the block.

    Raises:
        HostKeyChangedError: The host is not the one that was seen before.
        SshUnreachableError: It does not answer, or does not accept the login.
    """
    trusting = Trusting(host)
    try:
        connection = await asyncssh.connect(host.address, host.port, **_options(host, trusting))
    except (asyncssh.Error, OSError, TimeoutError) as err:
        if trusting.changed:
            raise HostKeyChangedError(
                f"The key of {host} is not the one in {KnownHosts.of(host).path}."
            ) from err
        raise SshUnreachableError(f"Cannot log in to {host}: {_reason(err)}.") from err
    async with connection:
        yield Shell(host, connection)


def _options(host: Host, trusting: Trusting) -> dict[str, Any]:
    try:
        keys = [asyncssh.import_private_key(host.private_key)] if host.private_key else None
    except asyncssh.KeyImportError as err:
        raise SshUnreachableError(f"The private key for {host} cannot be read: {err}.") from err
    return {
        "username": host.username,
        "password": host.password,
        "client_keys": keys,
        "agent_path": host.agent_socket,
        "client_factory": lambda: trusting,
        # Nothing of the user's own settings; what is trusted is for `Trusting` to say.
        "known_hosts": b"",
        "config": None,
        "client_host_keys": None,
        "connect_timeout": host.connect_s,
        "login_timeout": host.connect_s,
    }


def _reason(err: BaseException) -> str:
    return (getattr(err, "reason", "") or str(err) or type(err).__name__).rstrip(".")
