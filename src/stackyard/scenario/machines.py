"""Where the commands of a scenario run: another machine over SSH, or this one."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import posixpath
import shlex
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stackyard.base import files, process
from stackyard.base.backoff import Backoff
from stackyard.base.errors import FileError, StackyardError
from stackyard.base.redaction import NOTHING_SECRET, Redactor
from stackyard.clients import ssh
from stackyard.scenario.failures import CommandFailedError, RebootNeededError, RootNeededError

__all__ = ["Local", "Machine", "MachineCommand", "Remote"]

OnLine = Callable[[str], None]

_BACKOFF = Backoff(0.1, 5.0, growth=1.5)
_READABLE = 0o644
_BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCommand:
    """A command, and how it is run.

    Attributes:
        script: What /bin/sh runs. Others can read it while it runs, so it holds no secret.
        stdin: Text that it reads; a place for secrets.
        timeout_s: When to give up on it.
        as_root: Whether root runs it.
        is_quiet: Whether its output is kept to ourselves, because it holds a secret.
    """

    script: str
    stdin: str = field(default="", repr=False)
    timeout_s: float = 60.0
    as_root: bool = True
    is_quiet: bool = False


class Machine(Protocol):
    """A machine that commands are run on and files are put on.

    Attributes:
        redactor: Masks secrets in what errors quote.
    """

    redactor: Redactor

    @property
    def shown(self) -> str:
        """What to call it in messages."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it is the one that we run on."""
        ...

    async def run(self, work: MachineCommand, on_line: OnLine | None = None) -> str:
        """Run a command and return everything that it wrote; if we are cancelled, it is ended.

        Raises:
            CommandFailedError: It ended with an error, or took too long; the last lines are quoted.
            UnreachableError: The machine does not answer.
        """
        ...

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Write a text file as root, completely or not.

        Raises:
            StackyardError: It cannot be written.
        """
        ...

    async def send(self, source: Path, path: str) -> None:
        """Copy a file to the machine, to a place that our user can write.

        Raises:
            StackyardError: It cannot be read or written.
        """
        ...

    async def receive(self, path: str, target: Path) -> None:
        """Copy a file from the machine; what came of it before stays and is continued.

        Raises:
            StackyardError: It cannot be read or written.
        """
        ...

    async def reboot(self, *, timeout_s: float, on_line: OnLine) -> None:
        """Restart the machine and wait until it is back.

        Raises:
            RebootNeededError: It is this machine: we cannot continue after that.
            UnreachableError: It did not come back in time.
        """
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


def _make_failed_error(
    machine: Machine, work: MachineCommand, *, ended: str, output: str, status: int | None = None
) -> CommandFailedError:
    """Return the error for a command that did not end well."""
    said = "" if work.is_quiet else "\n".join(output.strip().splitlines()[-15:])
    first, *more = work.script.strip().splitlines()
    shown = first if not more else f"{first} ..."
    detail = f"`{shown}` on {machine.shown} {ended}" + (f" and said:\n{said}" if said else ".")
    return CommandFailedError(machine.redactor(detail), status=status)


@dataclass(slots=True)
class Local:
    """The machine that we run on."""

    redactor: Redactor = NOTHING_SECRET
    is_local: bool = True

    @property
    def shown(self) -> str:
        """What to call it in messages."""
        return f"{socket.gethostname()} (this machine)"

    async def run(self, work: MachineCommand, on_line: OnLine | None = None) -> str:
        """Run a command here, as root through sudo where root is needed and we are not root."""
        argv: tuple[str, ...] = ("/bin/sh", "-c", work.script)
        if work.as_root and os.geteuid() != 0:
            if shutil.which("sudo") is None:
                raise RootNeededError("This has to be done by root, and there is no sudo.")
            argv = ("sudo", "-n", *argv)
        output: list[str] = []

        def take(_: process.Stream, line: str) -> None:
            output.append(line)
            if on_line is not None and not work.is_quiet:
                on_line(line)

        command = process.Command(
            argv=argv,
            env=process.environment({"LC_ALL": "C.UTF-8"}),
            stdin=_encode_input(work),
            timeout_s=work.timeout_s,
            redactor=self.redactor,
        )
        try:
            done = await process.run(command, take, check=False)
        except process.ProcessTimeoutError as err:
            ended = f"did not end within {work.timeout_s:g} s"
            raise _make_failed_error(self, work, ended=ended, output="\n".join(output)) from err
        if done.returncode != 0:
            status = done.returncode
            ended = f"ended with status {status}"
            raise _make_failed_error(self, work, ended=ended, output="\n".join(output), status=status)
        return "\n".join(output)

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Write a file here."""
        if os.geteuid() == 0:
            try:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
            except OSError as err:
                raise FileError.from_os_error(err, "make the folder of", path) from err
            files.replace_file(Path(path), _end_line(text).encode(), mode=mode)
            return
        await self.run(_make_write_command(path, text, mode))

    async def send(self, source: Path, path: str) -> None:
        """Copy a file to another place of this machine."""
        await self.receive(str(source), Path(path))

    async def receive(self, path: str, target: Path) -> None:
        """Copy a file from another place of this machine."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(_copy, Path(path), target)
        except OSError as err:
            raise FileError.from_os_error(err, "copy", path) from err

    async def reboot(self, *, timeout_s: float, on_line: OnLine) -> None:
        """Refuse: no one would continue after that."""
        del timeout_s, on_line
        raise RebootNeededError("The new kernel is installed, and this machine has to be started with it.")

    async def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Remote:
    """Another machine over SSH, connected when it is first needed."""

    host: ssh.Host
    redactor: Redactor = NOTHING_SECRET
    is_local: bool = False
    _shell: ssh.Shell | None = None
    _open: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)

    @property
    def shown(self) -> str:
        """What to call it in messages."""
        return str(self.host)

    async def _connect(self) -> ssh.Shell:
        if self._shell is None:
            self._shell = await self._open.enter_async_context(ssh.connect(self.host))
        return self._shell

    async def run(self, work: MachineCommand, on_line: OnLine | None = None) -> str:
        """Run a command there, as root through sudo where root is needed and we log in as another."""
        shell = await self._connect()
        script = ssh.Script(
            text=work.script,
            stdin=work.stdin,
            becomes_root=work.as_root and shell.host.username != "root",
            timeout_s=work.timeout_s,
        )
        try:
            done = await ssh.attend(shell, script, None if work.is_quiet else on_line)
        except ssh.SshError as err:
            await self.close()
            raise ssh.SshUnreachableError(self.redactor(err.detail)) from err
        if done.status == 0:
            return done.output
        ended = (
            f"did not end within {work.timeout_s:g} s and was stopped"
            if done.timed_out
            else "was ended by a signal"
            if done.status is None
            else f"ended with status {done.status}"
        )
        raise _make_failed_error(self, work, ended=ended, output=done.output, status=done.status)

    async def write(self, path: str, text: str, *, mode: int = 0o644) -> None:
        """Write a file there."""
        await self.run(_make_write_command(path, text, mode))

    async def send(self, source: Path, path: str) -> None:
        """Copy a file there, under another name until it is whole."""
        shell = await self._connect()
        partial = f"{path}.partial"
        try:
            with source.open("rb") as content:
                await shell.write_file(partial, content)
        except OSError as err:
            raise FileError.from_os_error(err, "read", source) from err
        await self.run(
            MachineCommand(script=f"mv -f {shlex.quote(partial)} {shlex.quote(path)}", as_root=False)
        )

    async def receive(self, path: str, target: Path) -> None:
        """Copy a file from there; what came before is continued."""
        shell = await self._connect()
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with files.open_file(target, mode=_READABLE, is_appended=True) as stream:
                await ssh.receive_file(shell, path, stream, offset=stream.tell())
        except OSError as err:
            raise FileError.from_os_error(err, "write", target) from err

    async def reboot(self, *, timeout_s: float, on_line: OnLine) -> None:
        """Restart the machine and wait until it answers with another boot."""
        before = (await self.run(MachineCommand(script=_BOOT_ID, as_root=False))).strip()
        with contextlib.suppress(CommandFailedError, ssh.SshUnreachableError):
            # It may be gone before it has answered.
            await self.run(MachineCommand(script="systemctl reboot", timeout_s=30.0))
        on_line(f"waiting for {self.shown} to come back")
        await self.close()
        until = time.monotonic() + timeout_s
        # A machine that starts tells no one; it can only be asked.
        for pause_s in _BACKOFF:
            with contextlib.suppress(ssh.SshUnreachableError, CommandFailedError):
                if (
                    await self.run(MachineCommand(script=_BOOT_ID, as_root=False, timeout_s=15.0))
                ).strip() != before:
                    return
            await self.close()
            if time.monotonic() >= until:
                raise ssh.SshUnreachableError(
                    f"{self.shown} did not come back within {timeout_s:g} s of its restart."
                )
            await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Close the connection; the next command makes a new one."""
        self._shell = None
        closing, self._open = self._open, contextlib.AsyncExitStack()
        # What is broken already cannot be closed in good order.
        with contextlib.suppress(StackyardError, OSError):
            await closing.aclose()


def _encode_input(work: MachineCommand) -> bytes | None:
    return _end_line(work.stdin).encode() if work.stdin else None


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as content, files.open_file(target, mode=_READABLE) as stream:
        shutil.copyfileobj(content, stream)


def _end_line(text: str) -> str:
    """Return a text with one line feed at its end."""
    return text.rstrip("\n") + "\n"


def _make_write_command(path: str, text: str, mode: int) -> MachineCommand:
    """Return the command that writes a file: beside it first, then in its place."""
    where, digest = shlex.quote(path), hashlib.sha256(text.encode()).hexdigest()[:12]
    partial = shlex.quote(f"{path}.{digest}")
    script = (
        f"set -e; mkdir -p {shlex.quote(posixpath.dirname(path))}; umask 077; "
        f"cat > {partial}; chmod {mode:o} {partial}; mv -f {partial} {where}"
    )
    return MachineCommand(script=script, stdin=_end_line(text))
