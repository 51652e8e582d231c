"""A machine behind SSH that writes without end, and files that are none: each ends with an error of ours."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.ssh_hosts import real_shell

from stackyard.clients import ssh
from stackyard.clients.ssh import lifeline
from stackyard.clients.ssh import shell as ssh_shell
from stackyard.clients.ssh.greeting import read_greeting
from stackyard.path.port_probe import UnansweredError, probe_directly


@contextlib.asynccontextmanager
async def logged_in(folder: Path) -> AsyncIterator[ssh.Shell]:
    async with real_shell(folder) as host, ssh.connect(host) as shell:
        yield shell


async def test_an_output_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_shell, "_LARGEST_OUTPUT_MIB", 1)

    async with logged_in(tmp_path) as shell:
        with pytest.raises(ssh.SshError, match="wrote more than 1 MiB"):
            await shell.run("yes")
        assert await shell.run("head -c 1000000 /dev/zero | wc -c") == "1000000\n"


async def test_what_is_kept_of_an_output_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifeline, "_KEPT_BYTES", 5_000)

    async with logged_in(tmp_path) as shell:
        lines = "i=0; while [ $i -lt 30 ]; do printf '%01000d\\n' $i; i=$((i+1)); done"
        ended = await ssh.attend(shell, ssh.Script(text=lines))
        assert len(ended.output) < 6_000
        assert ended.output.endswith("29")


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "link to a device"])
async def test_what_is_no_file_is_not_received(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "source"
    if kind == "device":
        path = Path("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")

    async with logged_in(tmp_path) as shell:
        target = io.BytesIO()
        with pytest.raises(ssh.SshError, match="it is not a regular file"):
            await ssh.receive_file(shell, str(path), target)
        assert target.getvalue() == b""


async def test_a_file_is_received_up_to_the_size_that_it_has(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 1_000)

    async with logged_in(tmp_path) as shell:
        for offset in (0, 100_000, 256_000, 300_000):
            target = io.BytesIO()
            assert await ssh.receive_file(shell, str(source), target, offset=offset) == len(target.getvalue())
            assert target.getvalue() == source.read_bytes()[offset:]


async def test_a_port_that_says_a_line_without_end_is_read_as_far_as_a_greeting_goes() -> None:
    """A line over 64 KiB was an error that nothing caught: a guest could end the run with it."""

    async def shout(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                writer.write(b"a" * 100_000)
                await writer.drain()
        except OSError:
            writer.close()

    server = await asyncio.start_server(shout, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await probe_directly("127.0.0.1", port, waits_for_line=True) == b"a" * 255
    with pytest.raises(UnansweredError):
        await probe_directly("127.0.0.1", port, waits_for_line=True)


@pytest.mark.parametrize(
    ("parts", "line"),
    [([b"SSH-2.0-x\r\nmore"], b"SSH-2.0-x\r"), ([b"SS", b"H-2\n"], b"SSH-2"), ([b"SSH"], b"SSH"), ([], b"")],
)
def test_a_greeting_is_the_first_line(parts: list[bytes], line: bytes) -> None:
    waiting = iter([*parts, b""])

    async def read(_count: int) -> bytes:
        return next(waiting)

    assert asyncio.run(read_greeting(read)) == line
