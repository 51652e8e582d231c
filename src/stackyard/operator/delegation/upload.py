"""Sending large files to an inner host: completely or not, resuming where a lost connection stopped it."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import TYPE_CHECKING

from stackyard.clients.ssh.channel import open_channel
from stackyard.clients.ssh.failures import SshError
from stackyard.operator.delegation.archive import ARCHIVES, RUNTIMES
from stackyard.operator.delegation.inner_host import BASE, InnerHostError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from stackyard.base import events
    from stackyard.clients.ssh.channel import Channel
    from stackyard.operator.delegation.archive import Archive
    from stackyard.operator.delegation.inner_host import InnerHost

__all__ = ["receive_stream", "runtime_of", "send_archive", "unpack_archive"]

_CHUNK_BYTES = 2**20
_OLD_DAYS = 7
_QUOTED_BYTES = 2000
# How long a host may take for the next piece of a file, and to end after the last one.
_STALL_S = 300.0


def runtime_of(archive: Archive) -> str:
    """Return where an archive is unpacked on an inner host."""
    return f"{BASE}/{RUNTIMES}/{archive.digest}"


def _path_of(archive: Archive) -> str:
    return f"{BASE}/{ARCHIVES}/{archive.digest}.tar.gz"


async def send_archive(inner: InnerHost, archive: Archive, step: events.Step) -> bool:
    """Send the archive unless it is there; return whether it had to be.

    Raises:
        InnerHostError: What arrived is not what was sent.
        SshError: The connection broke; what has arrived is kept for the next time.
    """
    target = _path_of(archive)
    part = f"{target}.part"
    said = await inner.run(
        f"umask 077; mkdir -p {BASE}/{ARCHIVES} {BASE}/{RUNTIMES}; "
        f"if [ -f {target} ]; then echo whole; "
        f"elif [ -f {part} ]; then wc -c < {part}; else echo 0; fi"
    )
    if said.strip() == "whole":
        return False
    arrived = max(0, min(int(said.strip() or 0), archive.size_bytes))
    # From its beginning it is unpacked while it comes; the rest of one that was cut off only joins its part.
    unpacked = f"{runtime_of(archive)}.part"
    whole = f"umask 077; rm -rf {unpacked}; mkdir {unpacked}; tee {part} | tar -xzof - -C {unpacked}"
    script = f"umask 077; cat >> {part}" if arrived else whole
    await receive_stream(inner, script, _rest_of(archive.path, arrived, archive.size_bytes, step))
    await _take(inner, part, target, archive.digest)
    if not arrived:
        runtime = runtime_of(archive)
        await inner.run(f"[ -d {runtime} ] || mv -T {unpacked} {runtime}")
    return True


async def _rest_of(path: Path, arrived: int, total: int, step: events.Step) -> AsyncGenerator[bytes, None]:
    with path.open("rb") as stream:
        stream.seek(arrived)
        while chunk := await asyncio.to_thread(stream.read, _CHUNK_BYTES):
            arrived += len(chunk)
            yield chunk
            step.progressed(arrived, total, "bytes")


async def receive_stream(inner: InnerHost, script: str, chunks: AsyncGenerator[bytes, None]) -> None:
    """Have a script on the host read a stream.

    Raises:
        InnerHostError: The script failed, or the host stopped reading.
        SshError: The connection broke.
    """
    async with (
        contextlib.aclosing(chunks),
        open_channel(inner.shell, inner.as_root(script)) as channel,
    ):
        try:
            async for chunk in chunks:
                async with asyncio.timeout(_STALL_S):
                    if not await _is_taken(inner, channel, chunk):
                        break
            async with asyncio.timeout(_STALL_S):
                said, status = await _read_exit(channel)
        except TimeoutError as err:
            raise InnerHostError(f"{inner.name} took nothing of a file for {_STALL_S:.0f} s.") from err
    if status is None:
        raise SshError(f"The connection to {inner.shell.host} broke while a file was sent.")
    if status != 0:
        text = inner.redact(said.decode(errors="replace").strip())
        raise InnerHostError(f"{inner.name} did not take a file: {text}")


async def _is_taken(inner: InnerHost, channel: Channel, chunk: bytes) -> bool:
    """Send a piece; return whether the script reads on."""
    try:
        await channel.write(chunk)
    except SshError:
        if inner.shell.is_closed:
            raise
        # The script has ended: what it says is the reason.
        return False
    return True


async def _read_exit(channel: Channel) -> tuple[bytes, int | None]:
    """Return what a script says last, and its status."""
    await channel.end_input()
    said = b""
    while data := await channel.read_aside():
        # Its end says why; a host that writes without end must not fill our memory.
        said = (said + data)[-_QUOTED_BYTES:]
    return said, await channel.status()


async def _take(inner: InnerHost, part: str, target: str, digest: str) -> None:
    """Give a file that has arrived its name, if it is what was sent."""
    said = await inner.run(f"sha256sum < {shlex.quote(part)}")
    if said.split()[0] != digest:
        await inner.run(f"rm -f {shlex.quote(part)}")
        raise InnerHostError(f"{inner.name}: the archive arrived with another SHA-256 than it was sent with.")
    await inner.run(f"mv {shlex.quote(part)} {shlex.quote(target)}")


async def unpack_archive(inner: InnerHost, archive: Archive) -> None:
    """Unpack the archive unless it is, and remove those that no one has used for a week.

    Raises:
        InnerHostError: It cannot be unpacked.
    """
    runtime = runtime_of(archive)
    await inner.run(
        f"umask 077; if [ -d {runtime} ]; then touch {runtime} {_path_of(archive)}; else "
        f"new={runtime}.$$; mkdir -p $new; tar -xzof {_path_of(archive)} -C $new; mv -T $new {runtime}; fi; "
        f"find {BASE}/{RUNTIMES} {BASE}/{ARCHIVES} -mindepth 1 -maxdepth 1 -mtime +{_OLD_DAYS} "
        f"! -name '{archive.digest}*' -exec rm -rf {{}} +"
    )
