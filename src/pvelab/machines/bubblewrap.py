"""Starting a guest's sandbox with bubblewrap, and finding out whether that works here.

The sandbox has user, process, IPC, host name, mount, cgroup and network namespaces of its own. Inside it are
the guest's own root directory and, read-only, the machine's `/usr`; nothing else of the machine.

Root starts it with a range of user numbers (as Proxmox does for unprivileged containers), so that owners of
files are real and no number inside is root outside. An ordinary user has a single number: everyone in the
guest is that user outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from pvelab.machines.machine import MachineError
from stackyard.base import process

if TYPE_CHECKING:
    import socket
    from collections.abc import Collection, Sequence

__all__ = ["PYTHON", "Bubblewrap", "Layout", "find_bubblewrap"]

PYTHON = "/usr/bin/python3"
_FIRST_NUMBER = 100_000
_NUMBERS = 65_536
_PROBE_TIMEOUT_S = 20.0
_INFO_BYTES = 65536
# The init needs these to be root of the guest; what it starts keeps less.
_CAPABILITIES = (
    "CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP CAP_SETFCAP"
    " CAP_NET_ADMIN CAP_NET_BIND_SERVICE CAP_SYS_ADMIN"
).split()
_SBIN = "/usr/sbin"
# Programs of Proxmox VE that scripts call by their whole path, as their sudo rules name them.
_OF_NODES = frozenset(("ha-manager", "pct", "pveum", "pvesm", "qm"))
_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_LIBRARY = Path(__file__).parent / "guest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the parts of a guest are on this machine.

    Attributes:
        root: Its root directory.
        local: Its `/usr/local`.
        shim: The program that represents each of the shims.
        names: The shims.
        boot_id: The file that says which boot this is.
    """

    root: Path
    local: Path
    shim: Path
    names: Sequence[str]
    boot_id: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """Bubblewrap as it works here.

    Attributes:
        program: Its path.
        has_numbers: Whether guests have a range of user numbers of their own.
    """

    program: str
    has_numbers: bool

    @property
    def first_number(self) -> int | None:
        """The number outside that is root inside, None for our own."""
        return _FIRST_NUMBER if self.has_numbers else None

    async def start_init(
        self, layout: Layout, hostname: str, lab: socket.socket, on_line: process.OnLine
    ) -> process.Attached:
        """Start the sandbox of a guest, with its init on one end of a socket pair.

        Raises:
            MachineError: It does not start.
        """
        number = lab.fileno()
        # Isolated, but with the folder of our own: nothing that the guest has counts.
        code = (
            "import sys; sys.path.insert(0, '/run/lab/lib'); from guest.init import main;"
            " sys.exit(main(sys.argv[1:]))"
        )
        argv = (
            *self._namespaces(hostname),
            *_mounts(layout),
            *("--as-pid-1", "--", PYTHON, "-IS", "-c", code, str(number)),
        )
        return await self._start(argv, on_line, (number,))

    async def copy(self, source: Path, target: Path) -> None:
        """Copy a folder of a guest; a sandbox sees to it that no link in it leads anywhere else.

        Raises:
            MachineError: It fails.
        """
        argv = (
            *self._namespaces("copy"),
            *("--ro-bind", "/usr", "/usr"),
            *_links(),
            *("--ro-bind", str(source), "/source", "--bind", str(target), "/target", "--dev", "/dev"),
            *("--", "/usr/bin/cp", "-a", "--reflink=auto", "/source/.", "/target/"),
        )
        said: list[str] = []
        running = await self._start(argv, lambda _, line: said.append(line), ())
        try:
            await asyncio.wait({running.exited})
        finally:
            await running.end()
        if running.returncode:
            raise MachineError(f"A guest's files cannot be copied: {' '.join(said[-3:])}")

    def _namespaces(self, hostname: str) -> tuple[str, ...]:
        own = () if self.has_numbers else ("--uid", "0", "--gid", "0")
        kept = (word for name in _CAPABILITIES for word in ("--cap-add", name))
        return (
            *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
            *("--unshare-cgroup-try", "--die-with-parent", "--new-session", *own),
            *("--hostname", hostname, "--cap-drop", "ALL", *kept, "--clearenv"),
        )

    async def _start(
        self, argv: tuple[str, ...], on_line: process.OnLine, inherited: tuple[int, ...]
    ) -> process.Attached:
        with contextlib.ExitStack() as stack:
            blocked = told = None
            if self.has_numbers:
                blocked, told = _pipe(stack), _pipe(stack)
                numbers = (blocked[0].fileno(), told[1].fileno())
                argv = (*("--userns-block-fd", str(numbers[0]), "--info-fd", str(numbers[1])), *argv)
                inherited = (*inherited, *numbers)
            command = process.Command(argv=(self.program, *argv), env={}, keeps_output=False)
            try:
                running = process.start_attached(command, on_line, inherited=inherited)
            except (process.ProgramMissingError, process.ProgramUnusableError) as err:
                raise MachineError(err.detail) from err
            if blocked is not None and told is not None:
                told[1].close()
                try:
                    await _give_numbers(told[0].fileno())
                except (OSError, ValueError) as err:
                    await running.end()
                    raise MachineError(f"A sandbox gets no user numbers: {err}.") from err
                blocked[1].write(b"1")
            return running


async def find_bubblewrap() -> Bubblewrap | str:
    """Return bubblewrap as it works here, or why it does not."""
    missing = _missing()
    if missing is not None:
        return missing
    found = Bubblewrap(program=shutil.which("bwrap") or "bwrap", has_numbers=_may_give_numbers())
    said: list[str] = []
    argv = (
        *found._namespaces("probe"),
        *("--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"),
        *_links(),
        *("--", PYTHON, "-IS", "-c", "import ctypes; ctypes.CDLL('libcrypt.so.1')"),
    )
    try:
        running = await found._start(argv, lambda _, line: said.append(line), ())
    except MachineError as err:
        return err.detail
    await asyncio.wait({running.exited}, timeout=_PROBE_TIMEOUT_S)
    await running.end()
    if running.returncode:
        return f"bubblewrap does not work here: {' '.join(said[-2:]) or running.returncode}"
    return found


def _missing() -> str | None:
    """Say what a sandbox needs and this machine does not have."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    if not Path(PYTHON).exists():
        return f"there is no {PYTHON}, which guests run on"
    if not Path("/lib").is_symlink():
        return "the machine keeps its libraries outside of /usr"
    return None


def _may_give_numbers() -> bool:
    if os.geteuid() != 0:
        return False
    with contextlib.suppress(OSError, ValueError):
        inside, _, count = map(int, Path("/proc/self/uid_map").read_text().splitlines()[0].split())
        return inside == 0 and count >= _FIRST_NUMBER + _NUMBERS
    return False


def _mounts(layout: Layout) -> list[str]:
    words = ["--bind", str(layout.root), "/", "--ro-bind", "/usr", "/usr"]
    if Path("/usr/local").is_dir():
        words += ["--bind", str(layout.local), "/usr/local"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
    # Anyone who waits for a guest to have started again looks at this.
    words += ["--ro-bind", str(layout.boot_id), "/proc/sys/kernel/random/boot_id"]
    words += [
        "--dir",
        "/run/lab/lib",
        "--ro-bind",
        str(_LIBRARY),
        "/run/lab/lib/guest",
        "--dir",
        "/run/lab/bin",
    ]
    covered: dict[str, None] = {}
    for name in layout.names:
        words += ["--ro-bind", str(layout.shim), f"/run/lab/bin/{name}"]
        for folder in ("/usr/bin", _SBIN):
            # A link is covered where it leads to, and programs may share that place.
            place = os.path.realpath(f"{folder}/{name}")
            if os.path.isfile(place) and place.startswith("/usr/"):
                covered[place] = None
    added = [f"{_SBIN}/{name}" for name in layout.names if name in _OF_NODES]
    added = [place for place in added if not os.path.exists(place) and not os.path.islink(_SBIN)]
    if added:
        words += _own_sbin({*covered, *added})
    for place in (*covered, *added):
        words += ["--ro-bind", str(layout.shim), place]
    return words


def _own_sbin(left_out: Collection[str]) -> list[str]:
    """Return what makes a `/usr/sbin` that has room for programs that this machine does not have."""
    words = ["--ro-bind", _SBIN, "/run/lab/sbin", "--tmpfs", _SBIN]
    for entry in sorted(os.scandir(_SBIN), key=lambda one: one.name):
        if entry.path not in left_out:
            leads_to = os.readlink(entry.path) if entry.is_symlink() else f"/run/lab/sbin/{entry.name}"
            words += ["--symlink", leads_to, entry.path]
    return words


def _links() -> list[str]:
    """Return what makes the links of the machine's root that lead into /usr."""
    found = [name for name in _LINKS if Path("/", name).is_symlink()]
    return [word for name in found for word in ("--symlink", f"usr/{name}", f"/{name}")]


def _write(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="ascii")


def _pipe(stack: contextlib.ExitStack) -> tuple[io.FileIO, io.FileIO]:
    """Return the ends of a pipe. They are objects: a number that is closed twice may be another's by then."""
    reading, writing = os.pipe()
    return stack.enter_context(io.FileIO(reading, "r")), stack.enter_context(io.FileIO(writing, "w"))


async def _give_numbers(told: int) -> None:
    """Wait for the number of the sandbox's process and give it user and group numbers."""
    loop = asyncio.get_running_loop()
    data = b""
    while b"}" not in data:
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(told, _settle, ready)
        try:
            await asyncio.wait_for(ready, _PROBE_TIMEOUT_S)
        finally:
            loop.remove_reader(told)
        chunk = os.read(told, _INFO_BYTES)
        if not chunk:
            raise ValueError("the sandbox ended at once")
        data += chunk
    pid = int(orjson.loads(data)["child-pid"])
    for name in ("uid_map", "gid_map"):
        # The last number is ours, which bubblewrap needs to set things up; the init leaves it behind.
        text = f"0 {_FIRST_NUMBER} {_NUMBERS - 1}\n{_NUMBERS - 1} 0 1\n"
        _write(f"/proc/{pid}/{name}", text)


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
