"""Trying a port of a guest: directly, or from a machine that can reach it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Protocol

from stackyard.clients.ssh.greeting import read_greeting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.clients.ssh.host import Host
    from stackyard.clients.ssh.shell import Jumps

__all__ = ["PortProbe", "UnansweredError", "port_probes", "probe_directly"]

_CONNECT_S = 5.0


class UnansweredError(Exception):
    """A port does not accept: a reason to look again, told to no one as it is."""


class PortProbe(Protocol):
    """Tries a port."""

    async def __call__(self, address: str, port: int, *, waits_for_line: bool = False) -> bytes:
        """Return the first line that the port says, or nothing where that is not waited for.

        Raises:
            UnansweredError: It does not accept.
        """
        ...


async def probe_directly(address: str, port: int, *, waits_for_line: bool = False) -> bytes:
    """Try a port from this machine; see `PortProbe`."""
    try:
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                return await read_greeting(reader.read) if waits_for_line else b""
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError) as err:
        raise UnansweredError(f"{address}:{port}") from err


@contextlib.asynccontextmanager
async def port_probes(jump: Host | None) -> AsyncIterator[PortProbe]:
    """Give what tries ports, for the length of a block.

    Args:
        jump: The machine from which they are tried; logged in to when the first port is. None tries directly.
    """
    if jump is None:
        yield probe_directly
        return
    through = _RemoteProbe(jump)
    try:
        yield through
    finally:
        await through.aclose()


class _RemoteProbe:
    """Tries ports from another machine."""

    def __init__(self, jump: Host) -> None:
        self._jump = jump
        self._jumps: Jumps | None = None

    async def __call__(self, address: str, port: int, *, waits_for_line: bool = False) -> bytes:
        from stackyard.clients import ssh  # lazy: half a second, and few plans come this far

        if self._jumps is None:
            self._jumps = ssh.Jumps()
        try:
            async with asyncio.timeout(_CONNECT_S):
                shell = await self._jumps.shell(self._jump)
                return await shell.probe_port(address, port, waits_for_line=waits_for_line)
        except (ssh.SshError, ssh.SshUnreachableError, TimeoutError) as err:
            raise UnansweredError(f"{address}:{port}") from err

    async def aclose(self) -> None:
        if self._jumps is not None:
            await self._jumps.aclose()
