"""Machines behind real SSH: one that runs what it is told, and one that answers as a script says."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import asyncssh

from stackyard.clients import ssh

__all__ = ["Ran", "ScriptedHost", "real_shell", "scripted"]


class _Open(asyncssh.SSHServer):
    """Lets everybody in: what is tested is what happens then."""

    def begin_auth(self, username: str) -> bool:
        return False


async def _run(
    process: asyncssh.SSHServerProcess[bytes], path: str, children: list[subprocess.Popen[bytes]]
) -> None:
    """Run a command with a real shell, as sshd does: in a session of its own, its input closed with ours."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", process.command or ""],
        env={"PATH": path, "HOME": "/nonexistent"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    children.append(child)
    feeding = asyncio.create_task(_feed(process, child))
    assert child.stdout is not None
    with contextlib.suppress(OSError):
        # Whoever is gone reads no more, and the child may not know yet.
        while data := await asyncio.to_thread(child.stdout.read1, 65536):  # type: ignore[attr-defined]
            process.stdout.write(data)
    status = await asyncio.to_thread(child.wait)
    feeding.cancel()
    with contextlib.suppress(OSError):
        process.exit(status if status >= 0 else 128 - status)


async def _feed(process: asyncssh.SSHServerProcess[bytes], child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await process.stdin.read(65536):
            await asyncio.to_thread(_write, child.stdin, data)
    with contextlib.suppress(OSError):
        child.stdin.close()


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)
    stream.flush()


@contextlib.asynccontextmanager
async def real_shell(folder: Path, *, programs: Path | None = None) -> AsyncIterator[ssh.Host]:
    """Serve a machine that is this one: commands run, and files are those that are here.

    Args:
        folder: For the file of known hosts.
        programs: A folder of programs that go before those of the system.
    """
    children: list[subprocess.Popen[bytes]] = []
    path = ":".join([*([str(programs)] if programs else []), "/usr/bin", "/bin"])
    server = await asyncssh.create_server(
        _Open,
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=lambda process: _run(process, path, children),
        sftp_factory=True,
        encoding=None,
    )
    try:
        async with server:
            yield _host(server, folder)
    finally:
        for child in children:
            with child:
                child.kill()


def _host(server: asyncssh.SSHAcceptor, folder: Path) -> ssh.Host:
    return ssh.Host(address="127.0.0.1", port=server.get_port(), known_hosts=folder / "known_hosts")


@dataclass(frozen=True)
class Ran:
    """A command that a scripted host was given."""

    script: str
    stdin: str
    as_root: bool


# What a command answers: its status and what it writes. None ends the connection without a word.
Answer = Callable[[Ran], "tuple[int, str] | None"]
Waiting = Callable[[Ran], Awaitable["tuple[int, str]"]]


@dataclass
class ScriptedHost:
    """A machine that answers each command as it is told to, and remembers all of them.

    Attributes:
        answers: Patterns, searched in the script, with what is answered; the first that fits counts.
        ran: Every command, in order.
        unknown: Those that nothing fitted; they are answered with status 127.
        hung: Set when a command is under way that never ends by itself.
        ended: Set when such a command was ended from the other side.
    """

    answers: list[tuple[str, Answer | Waiting | str | int]] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    hung: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, pattern: str, what: Answer | Waiting | str | int = "") -> None:
        """Answer commands that fit a pattern: a text with status 0, a status, or what a function returns."""
        self.answers.append((pattern, what))

    @property
    def scripts(self) -> list[str]:
        """The first lines of all commands."""
        return [one.script.splitlines()[0] for one in self.ran]

    async def serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Answer one command."""
        words = shlex.split(process.command or "")
        as_root = words[:2] == ["sudo", "-n"]
        script, given = words[-2], int(words[-1])
        stdin = (await process.stdin.readexactly(given)).decode() if given else ""
        ran = Ran(script=script, stdin=stdin, as_root=as_root)
        self.ran.append(ran)
        what = self._found(ran)
        if what == "hang":
            self.hung.set()
            await process.stdin.read()
            self.ended.set()
            process.exit(143)
            return
        answered = what(ran) if callable(what) else what
        if isinstance(answered, Awaitable):
            answered = await answered
        if answered is None:
            process.get_extra_info("connection").abort()
            return
        status, text = _as_pair(answered)
        process.stdout.write(text.encode() + (b"\n" if text else b""))
        process.exit(status)

    def _found(self, ran: Ran) -> Answer | Waiting | str | int:
        for pattern, what in self.answers:
            if re.search(pattern, ran.script):
                return what
        self.unknown.append(ran.script)
        return 127


def _as_pair(answered: tuple[int, str] | str | int) -> tuple[int, str]:
    if isinstance(answered, tuple):
        return answered
    return (answered, "") if isinstance(answered, int) else (0, answered)


@contextlib.asynccontextmanager
async def scripted(machine: ScriptedHost, folder: Path) -> AsyncIterator[ssh.Host]:
    """Serve a scripted machine for the length of the block."""
    server = await asyncssh.create_server(
        _Open,
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=machine.serve,
        encoding=None,
    )
    async with server:
        yield _host(server, folder)
