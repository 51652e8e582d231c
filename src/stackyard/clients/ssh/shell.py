"""A connection to a machine: commands and files."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
from typing import TYPE_CHECKING, Any, BinaryIO

import asyncssh

from stackyard.clients.ssh.failures import (
    HostKeyChangedError,
    LoginRefusedError,
    RemoteCommandError,
    SshError,
    SshUnreachableError,
)
from stackyard.clients.ssh.greeting import read_greeting
from stackyard.clients.ssh.known_hosts import HostKeyPolicy, list_pinned_algorithms
from stackyard.clients.ssh.openssh import resolve_login
from stackyard.clients.ssh.socks5 import open_through

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.ssh.host import Host

__all__ = ["Jumps", "Shell", "connect", "first_usable_key"]

_QUOTED_CHARACTERS = 2000
# No command is run this way for more: anyone who writes on and on must not fill our memory.
_LARGEST_OUTPUT_MIB = 64
_CHUNK_BYTES = 64 * 1024
# A machine that goes away without a word is noticed after three of these.
_KEEPALIVE_S = 15.0


class Shell:
    """A machine that we are logged in to."""

    def __init__(self, host: Host, connection: asyncssh.SSHClientConnection) -> None:
        self.host = host
        self._connection = connection

    @property
    def host_key(self) -> str:
        """The public key that the machine has shown, as one line."""
        key = self._connection.get_server_host_key()
        return "" if key is None else key.export_public_key().decode().strip()

    @property
    def is_closed(self) -> bool:
        """Whether the connection is no more."""
        return bool(self._connection.is_closed())

    async def run(self, command: str, *, stdin: bytes = b"", timeout_s: float | None = None) -> str:
        """Run a command and return everything that it wrote.

        Raises:
            RemoteCommandError: It ended with an error, which is quoted, or wrote more than anyone asked for.
            SshError: The connection broke, or it took too long.
        """
        try:
            async with asyncio.timeout(timeout_s):
                output, status = await self._collect(command, stdin)
        except (asyncssh.Error, OSError, TimeoutError) as err:
            raise SshError(f"A command on {self.host} did not end well: {_reason(err)}.") from err
        said = output.decode(errors="replace")
        if status != 0:
            quoted = said.strip()[-_QUOTED_CHARACTERS:] or "nothing"
            raise RemoteCommandError(
                f"A command on {self.host} ended with status {status} and said: {quoted}", status=status
            )
        return said

    async def _collect(self, command: str, stdin: bytes) -> tuple[bytes, int | None]:
        process = await self._connection.create_process(
            command, input=stdin, encoding=None, stderr=asyncssh.STDOUT
        )
        output = bytearray()
        try:
            while chunk := await process.stdout.read(_CHUNK_BYTES):
                output += chunk
                if len(output) > _LARGEST_OUTPUT_MIB * 2**20:
                    text = (
                        f"A command on {self.host} wrote more than {_LARGEST_OUTPUT_MIB} MiB; it was ended."
                    )
                    # Not the connection is to blame: another try would bring the same.
                    raise RemoteCommandError(text, status=None)
            await process.wait_closed()
        finally:
            process.close()
        return bytes(output), process.exit_status

    async def start(self, command: str, *, joins_outputs: bool = True) -> asyncssh.SSHClientProcess[bytes]:
        """Start a command whose streams the caller reads and writes.

        Args:
            command: The command.
            joins_outputs: Whether both outputs come as one.

        Raises:
            SshError: It cannot be started.
        """
        stderr = asyncssh.STDOUT if joins_outputs else asyncssh.PIPE
        try:
            return await self._connection.create_process(command, encoding=None, stderr=stderr)
        except (asyncssh.Error, OSError) as err:
            raise SshError(f"A command on {self.host} could not be started: {_reason(err)}.") from err

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

    async def probe_port(self, address: str, port: int, *, waits_for_line: bool = False) -> bytes:
        """Connect from this machine to a port of another one, and return the first line that it says.

        Args:
            address: The other machine, as this one knows it.
            port: The port.
            waits_for_line: Whether to wait for a line; without, that it accepts is enough.

        Raises:
            SshError: It does not accept.
        """
        try:
            reader, writer = await self._connection.open_connection(address, port)
            try:
                return await read_greeting(reader.read) if waits_for_line else b""
            finally:
                writer.close()
                await writer.wait_closed()
        except (asyncssh.Error, OSError) as err:
            raise SshError(f"{self.host} cannot reach {address}:{port}: {_reason(err)}.") from err

    @contextlib.asynccontextmanager
    async def forward_port(self, address: str, port: int) -> AsyncIterator[int]:
        """Open a port of our own loopback that leads from this machine to another one's, for a block.

        Raises:
            SshError: It cannot be opened.
        """
        try:
            listener = await self._connection.forward_local_port("127.0.0.1", 0, address, port)
        except (asyncssh.Error, OSError) as err:
            raise SshError(f"No way to {address} through {self.host}: {_reason(err)}.") from err
        try:
            yield listener.get_port()
        finally:
            listener.close()
            await listener.wait_closed()


class Jumps:
    """Machines that others are reached through, each logged in to once for the length of the block."""

    def __init__(self) -> None:
        # Works without being entered, too: then `aclose` is the end.
        self._stack = contextlib.AsyncExitStack()
        self._shells: dict[Host, Shell] = {}
        self._locks: dict[Host, asyncio.Lock] = {}

    async def __aenter__(self) -> Jumps:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        self._shells.clear()
        await self._stack.aclose()

    async def shell(self, host: Host) -> Shell:
        """Return the shell of a machine, logged in again where the connection is no more.

        Raises:
            SshUnreachableError: It does not answer, or does not accept the login.
        """
        async with self._locks.setdefault(host, asyncio.Lock()):
            known = self._shells.get(host)
            if known is None or known.is_closed:
                known = await self._stack.enter_async_context(connect(host, jumps=self))
                self._shells[host] = known
            return known


@contextlib.asynccontextmanager
async def connect(host: Host, *, jumps: Jumps | None = None) -> AsyncIterator[Shell]:
    """Log in for the length of the block.

    Args:
        host: Where to and as whom.
        jumps: Keeps the connections to the machines on the way for others; without, they are of this one
            alone.

    Raises:
        HostKeyChangedError: The host is not the one that was seen before, or whose key is pinned.
        SshConfigError: OpenSSH's own settings count, and cannot be read.
        SshUnreachableError: It, or a machine on the way, does not answer, or does not accept the login.
    """
    host = resolve_login(host)
    async with contextlib.AsyncExitStack() as stack:
        tunnel = None
        if host.via is not None:
            if jumps is None:
                jumps = await stack.enter_async_context(Jumps())
            tunnel = (await jumps.shell(host.via))._connection
        connection = await _log_in(host, tunnel)
        await stack.enter_async_context(connection)
        yield Shell(host, connection)


async def _log_in(host: Host, tunnel: asyncssh.SSHClientConnection | None) -> asyncssh.SSHClientConnection:
    trusting = HostKeyPolicy(host)
    options = _options(host, trusting)
    if host.socks5 is not None:
        # The socket has no name of its own; what is trusted is the machine behind the proxy.
        options["sock"] = await open_through(host.socks5, host.address, host.port, timeout_s=host.connect_s)
    try:
        return await asyncssh.connect(host.address, host.port, tunnel=tunnel or (), **options)
    except asyncssh.PermissionDenied as err:
        raise LoginRefusedError(f"Cannot log in to {host}: {_reason(err)}.") from err
    except (asyncssh.Error, OSError, TimeoutError) as err:
        if trusting.changed:
            raise HostKeyChangedError(f"The key of {host} is not {trusting.place}.") from err
        raise SshUnreachableError(f"Cannot log in to {host}: {_reason(err)}.") from err


def _options(host: Host, trusting: HostKeyPolicy) -> dict[str, Any]:
    options: dict[str, Any] = {
        "username": host.username,
        "password": host.password,
        "client_keys": _keys(host),
        "agent_path": host.agent_socket,
        "client_factory": lambda: trusting,
        # Nothing of the user's own settings; what is trusted is for `HostKeyPolicy` to say.
        "known_hosts": b"",
        "config": None,
        "client_host_keys": None,
        "connect_timeout": host.connect_s,
        "login_timeout": host.connect_s,
        "keepalive_interval": _KEEPALIVE_S,
        # Processors do this by themselves: images and archives go through in half the time.
        "encryption_algs": "^aes128-gcm@openssh.com,aes256-gcm@openssh.com",
    }
    if host.agent_identities is not None:
        options["agent_identities"] = [str(path) for path in host.agent_identities]
        if not options["agent_identities"]:
            options["agent_path"] = None
    if host.forwarded_agent is not None:
        options["agent_forwarding"] = host.forwarded_agent
    if host.proxy_command is not None:
        options["proxy_command"] = host.proxy_command
    if host.host_keys:
        options["server_host_key_algs"] = list(list_pinned_algorithms(host))
    return options


def _keys(host: Host) -> list[asyncssh.SSHKey] | None:
    try:
        keys = [asyncssh.import_private_key(host.private_key)] if host.private_key else []
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as err:
        raise SshUnreachableError(f"The private key for {host} cannot be read: {err}.") from err
    for path in host.key_files:
        # One with a passphrase is in the agent, or else of no use without someone to ask.
        with contextlib.suppress(asyncssh.KeyImportError, asyncssh.KeyEncryptionError, OSError):
            keys.append(asyncssh.read_private_key(path))
    return keys or None


def first_usable_key(host: Host) -> str | None:
    """Return the first private key that needs no passphrase, as text; None where there is none."""
    if host.private_key:
        return host.private_key
    for path in host.key_files:
        with contextlib.suppress(asyncssh.KeyImportError, asyncssh.KeyEncryptionError, OSError):
            return asyncssh.read_private_key(path).export_private_key().decode()
    return None


def _reason(err: BaseException) -> str:
    return (getattr(err, "reason", "") or str(err) or type(err).__name__).rstrip(".")
