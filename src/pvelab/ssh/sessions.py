"""One command of one client: run in a shell of the lab, its streams tied to the SSH channel."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import asyncssh

from pvelab.server.dispatch import ConnectionDropped
from pvelab.ssh.shell import Streams

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pvelab.ssh.shell import Shell

__all__ = ["ChannelSink", "run_session", "server_options"]

_CHUNK = 256 * 1024
_DEFECT = 70
_NO_COMMAND = (
    "This is the stackyard lab. It has no interactive shell: give the command to run, as in"
    " `ssh host hostname`."
)


def server_options() -> dict[str, Any]:
    """Return what every SSH server of the lab has in common: nothing of the machine is used or opened."""
    return {
        "encoding": None,
        "line_editor": False,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "allow_scp": False,
        "gss_host": None,
        "host_based_auth": False,
        "kbdint_auth": False,
        "sftp_version": 3,
        "rdns_lookup": False,
        "server_version": "OpenSSH_10.0p2",
    }


class _ChannelSource:
    def __init__(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._process = process

    async def read(self) -> bytes:
        return await self._process.stdin.read(_CHUNK)


class ChannelSink:
    """What a client is sent.

    Args:
        writer: One of the outputs of its channel.
    """

    def __init__(self, writer: asyncssh.SSHWriter[bytes]) -> None:
        self._writer = writer

    async def write(self, data: bytes) -> None:
        """Send a chunk, when the client has room for it."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """Leave the channel open: the process ends it."""


async def run_session(
    process: asyncssh.SSHServerProcess[bytes],
    shell: Shell,
    *,
    before_answer: Callable[[], Awaitable[object]] | None = None,
) -> int | None:
    """Run what a client asks for and return its exit status; None if the client went away.

    Args:
        process: The client.
        shell: What runs it.
        before_answer: Called once the command is done, and before the client is told.

    Raises:
        ConnectionDropped: The call before the answer wants the client to hear nothing.
    """
    streams = Streams(
        stdin=_ChannelSource(process),
        stdout=ChannelSink(process.stdout),
        stderr=ChannelSink(process.stderr),
    )
    try:
        if process.command is None:
            await streams.complain(_NO_COMMAND)
            status = 1
        else:
            status = await shell.run(process.command, streams)
        if before_answer is not None:
            await before_answer()
        process.exit(status)
    except ConnectionDropped:
        raise
    except (asyncssh.Error, ConnectionError):
        # No one is there to be told; what the command has done stays done.
        with contextlib.suppress(OSError):
            process.close()
        return None
    except Exception as err:  # The edge of a command: a defect must not take the connection along.
        process.stderr.write(f"internal error of the lab: {type(err).__name__}: {err}\n".encode())
        status = _DEFECT
        process.exit(status)
    return status
