"""A command on another machine whose streams stay apart: what it reads, writes, and says aside."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import asyncssh

from stackyard.clients.ssh.failures import SshError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.ssh.host import Host
    from stackyard.clients.ssh.shell import Shell

__all__ = ["Channel", "open_channel"]

_CHUNK_BYTES = 256 * 1024
_CLOSING_S = 5.0


class Channel:
    """A command that runs on another machine."""

    def __init__(self, host: Host, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._host = host
        self._process = process

    async def write(self, data: bytes) -> None:
        """Write to its input, as fast as it reads.

        Raises:
            SshError: It does not read any more, or the connection is gone.
        """
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except (asyncssh.Error, OSError) as err:
            raise SshError(f"The connection to {self._host} broke: {_reason(err)}.") from err

    async def end_input(self) -> None:
        """Say that nothing more will be written."""
        with contextlib.suppress(OSError):
            self._process.stdin.write_eof()

    async def read(self) -> bytes:
        """Return more of its output; nothing when it has ended, or the connection is gone."""
        try:
            return bytes(await self._process.stdout.read(_CHUNK_BYTES))
        except (asyncssh.Error, OSError):
            return b""

    async def read_aside(self) -> bytes:
        """Return more of its other output; nothing at the end."""
        try:
            return bytes(await self._process.stderr.read(_CHUNK_BYTES))
        except (asyncssh.Error, OSError):
            return b""

    async def status(self) -> int | None:
        """Wait for its end and return its exit status; None when a signal or a lost connection ended it."""
        with contextlib.suppress(asyncssh.Error, OSError):
            await self._process.wait_closed()
        return self._process.exit_status if self._process.exit_signal is None else None

    async def close(self) -> None:
        """Let go of it; what runs behind it sees the end of its input."""
        self._process.close()
        with contextlib.suppress(asyncssh.Error, OSError, TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self._process.wait_closed()


@contextlib.asynccontextmanager
async def open_channel(shell: Shell, command: str) -> AsyncIterator[Channel]:
    """Start a command for the length of the block.

    Raises:
        SshError: It cannot be started.
    """
    channel = Channel(shell.host, await shell.start(command, joins_outputs=False))
    try:
        yield channel
    finally:
        await channel.close()


def _reason(err: BaseException) -> str:
    return (getattr(err, "reason", "") or str(err) or type(err).__name__).rstrip(".")
