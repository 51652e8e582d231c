"""The seam: what is inside a guest that runs, whatever it is made of.

A machine belongs to one guest from its start until it stops; a guest that starts again gets a new one. It
boots when someone first looks inside (`boot`), so that ten thousand guests no one logs in to cost nothing.
Cloud-init has run to its end when `boot` returns; whatever went wrong in it is in its own log, as on a real
guest.
"""

from __future__ import annotations

import enum
import fcntl
import os
import struct
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from pathlib import Path

    from pvelab.world.store import Document

__all__ = [
    "Endpoint",
    "Execution",
    "GuestMachine",
    "Kind",
    "MachineError",
    "MachineMaker",
    "Sink",
    "Source",
    "Streams",
    "Terminal",
]


class Kind(enum.StrEnum):
    """What guests are made of."""

    RECORDED = "recorded"
    SANDBOX = "sandbox"
    QEMU = "qemu"


class MachineError(StackyardError):
    """The inside of a guest of the lab cannot be reached: it did not boot, or has just been stopped."""

    code = "E-LAB-GUEST"
    summary = "A guest of the lab does not answer"
    default_remedy = "Look at the guest's status and at the log of the lab."


class Source(Protocol):
    """Something to read from."""

    async def read(self) -> bytes:
        """Return the next chunk, empty at the end."""
        ...


class Sink(Protocol):
    """Something to write to."""

    async def write(self, data: bytes) -> None:
        """Take a chunk."""
        ...


class Streams(Protocol):
    """Standard input, output and error of a program: those of the lab's own shell fit."""

    @property
    def stdin(self) -> Source:
        """What it reads."""
        ...

    @property
    def stdout(self) -> Sink:
        """What it writes."""
        ...

    @property
    def stderr(self) -> Sink:
        """What it complains of; unused where it has a terminal."""
        ...


class Terminal:
    """A terminal that a client asks for, whose size may change while the program runs.

    Args:
        name: Its kind: `xterm`.
        columns: Its width.
        rows: Its height.
    """

    def __init__(self, name: str = "xterm", columns: int = 80, rows: int = 24) -> None:
        self.name = name
        self.columns = columns
        self.rows = rows
        self._descriptor: int | None = None

    def attach(self, descriptor: int) -> None:
        """Tell which descriptor is the terminal; it is ours from now on."""
        self._descriptor = descriptor

    def resize(self, columns: int, rows: int) -> None:
        """Change its size; the system notifies the program."""
        self.columns, self.rows = columns, rows
        if self._descriptor is not None:
            size = struct.pack("HHHH", min(rows, 0xFFFF), min(columns, 0xFFFF), 0, 0)
            fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)

    def detach(self) -> None:
        """Let go of the descriptor: the program has ended."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A program to run in a guest.

    Attributes:
        argv: The program and its arguments, found by the guest's PATH. Exactly one of `argv` and `line` may
            be given; with neither the user's shell is started as a login shell.
        line: A command line for the user's shell, as an SSH client sends it.
        user: The user of the guest to run it as.
        env: Variables beside those of a login.
        cwd: The folder to start in; the user's home if None.
        terminal: The terminal to give it; pipes if None.
    """

    argv: tuple[str, ...] | None = None
    line: str | None = None
    user: str = "root"
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    terminal: Terminal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where something listens on this machine."""

    host: str
    port: int


class GuestMachine(Protocol):
    """The inside of one running guest."""

    @property
    def kind(self) -> Kind:
        """What it is made of."""
        ...

    async def boot(self) -> None:
        """Boot it, or wait until it has booted; at once if it has.

        Raises:
            MachineError: It does not come up.
        """
        ...

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Run a program to its end and return its exit status, 128 and more for a signal.

        A program that does not exist ends with 127 and a line on standard error, as in a shell. Cancelling
        ends the program and all that it has started. Boots the guest if need be.

        Raises:
            MachineError: The guest stopped meanwhile, or does not come up.
        """
        ...

    async def read_file(self, path: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a file, read as root of the guest.

        Raises:
            OSError: As `open` would, with the errno of the guest.
            MachineError: The guest does not answer.
        """
        ...

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file as root of the guest, in place of what it held.

        Raises:
            OSError: As `open` would, with the errno of the guest.
            MachineError: The guest does not answer.
        """
        ...

    async def users(self) -> tuple[str, ...]:
        """Return the names of those who can log in."""
        ...

    async def authorized_keys(self, user: str) -> tuple[str, ...]:
        """Return the lines of a user's authorized_keys; none for a user who is not there."""
        ...

    async def accepts_password(self, user: str, password: str) -> bool:
        """Return whether a user may log in over SSH with a password, and whether this is it."""
        ...

    async def host_keys(self) -> tuple[str, ...]:
        """Return the private SSH host keys that the guest was given (OpenSSH format); none: the lab's own."""
        ...

    async def endpoint(self, port: int) -> Endpoint | None:
        """Return where a port of the guest really listens.

        None where nothing of its own does: port 22 is then answered by the lab, with what the methods above
        tell, and every other port is dialed.
        """
        ...

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Return a socket that is connected to what listens on a port in the guest.

        Args:
            port: The port.
            source: The address that the connection is seen to come from, where that can be.

        Raises:
            OSError: Nothing listens there.
            MachineError: The guest stopped.
        """
        ...

    async def stop(self) -> None:
        """End it as a shutdown does: programs are asked to end first."""
        ...

    async def kill(self) -> None:
        """End it as pulling the plug does."""
        ...


class MachineMaker(Protocol):
    """Makes the machines of one kind; one for the whole lab."""

    @property
    def kind(self) -> Kind:
        """What they are made of."""
        ...

    @property
    def reason(self) -> str | None:
        """Why they are not made of something better, where that is known."""
        ...

    def make(self, guest: Document) -> GuestMachine:
        """Return the machine of a guest that runs; nothing is started yet."""
        ...

    async def copy(self, source: int, target: int, snapshot: str | None = None) -> None:
        """Let a guest begin with what is on another one's disk (or was, at a snapshot)."""
        ...

    async def remember(self, vmid: int, snapshot: str) -> None:
        """Keep what is on a guest's disk under the name of a snapshot."""
        ...

    async def go_back(self, vmid: int, snapshot: str) -> None:
        """Make a guest's disk what it was at a snapshot; the guest does not run."""
        ...

    def forget(self, vmid: int, snapshot: str | None = None) -> None:
        """Remove what is kept of a guest, or of one of its snapshots."""
        ...

    async def copy_folder(self, source: Path, target: Path) -> None:
        """Copy what is in a folder that guests may have written to, so that no link in it leads elsewhere.

        Raises:
            MachineError: It fails.
        """
        ...

    async def close(self) -> None:
        """Remove what does not outlive the lab; the machines have ended."""
        ...
