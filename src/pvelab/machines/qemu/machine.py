"""A real guest: QEMU as a process of its own that ends with the lab, and the agent inside it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import os
import re
import shlex
import socket
from typing import TYPE_CHECKING, Any

from pvelab.machines.machine import Endpoint, Kind, MachineError
from pvelab.machines.qemu.cloudinit import seed_image
from pvelab.machines.qemu.invocation import HostConnections, arguments, first_address
from pvelab.machines.qemu.qmp import Agent, AgentRefusedError, Monitor
from stackyard.base import process
from stackyard.base.files import replace_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from pvelab.machines.machine import Execution, Streams
    from pvelab.machines.qemu.disks import Disks
    from pvelab.machines.qemu.invocation import HostResources
    from pvelab.world.world import World

__all__ = ["QemuMachine"]

# An emulated guest on a busy machine takes minutes to its agent.
_BOOT_TIMEOUT_S = 900.0
_ASK_TIMEOUT_S = 120.0
_SHUTDOWN_TIMEOUT_S = 180.0
_LOOK_AGAIN_S = 0.2
_FILE_CHUNK = 1024 * 1024
_FORWARDED = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+(\S+)\s+(\d+)")
_ERRORS = {
    "No such file or directory": errno.ENOENT,
    "Permission denied": errno.EACCES,
    "Is a directory": errno.EISDIR,
    "Read-only file system": errno.EROFS,
}


class QemuMachine:
    """The machine of one VM.

    Args:
        world: The lab.
        vmid: The VM.
        disks: Its disks.
        find_host: Tells what this machine gives to guests.
        on_end: Called when QEMU has ended by itself: the guest has shut down, or QEMU failed.
        before: The machine that the VM was before, which must have let go of the disks.
    """

    kind = Kind.QEMU

    def __init__(
        self,
        world: World,
        vmid: int,
        disks: Disks,
        find_host: Callable[[], Awaitable[HostResources]],
        *,
        on_end: Callable[[int], None],
        before: QemuMachine | None = None,
    ) -> None:
        self._world = world
        self._vmid = vmid
        self._disks = disks
        self._find_host = find_host
        self._on_end = on_end
        self._before = before
        self._monitor = Monitor(self._handle_event)
        self._has_agent = asyncio.Event()
        self._agent = Agent()
        self._process: process.Attached | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._said: list[str] = []
        self._ending: asyncio.Future[None] | None = None
        self._ends: dict[int, Endpoint] = {}

    async def power_on(self) -> None:
        """Start QEMU; nothing if it runs.

        Raises:
            MachineError: It does not start.
        """
        async with self._starting:
            if self._process is not None:
                return
            if self._before is not None:
                await self._before.kill()
                self._before = None
            guest = self._world.guests.get(self._vmid)
            if guest is None:
                raise MachineError(f"There is no VM {self._vmid}.")
            files = await self._disks.prepare(guest)
            place = self._disks.place(self._vmid)
            replace_file(place / "seed.iso", seed_image(self._world, guest))
            monitor, agent = socket.socketpair(), socket.socketpair()
            with contextlib.ExitStack() as stack:
                for sock in (monitor[1], agent[1]):
                    stack.callback(sock.close)
                plugs = HostConnections(
                    disks=files,
                    seed=place / "seed.iso",
                    console=place / "console.log",
                    monitor=monitor[1].fileno(),
                    agent=agent[1].fileno(),
                )
                argv = arguments(self._world, guest, await self._find_host(), plugs)
                self._start(argv, (plugs.monitor, plugs.agent))
            for sock in (monitor[0], agent[0]):
                sock.setblocking(False)
            await self._monitor_up(monitor[0])
            await self._agent.connect(agent[0])

    async def boot(self) -> None:
        """Start it and wait until its agent answers, and cloud-init has done its work.

        Raises:
            MachineError: It does not come up.
        """
        await self.power_on()
        async with _deadline(_BOOT_TIMEOUT_S, f"VM {self._vmid} did not boot"):
            # QEMU tells when the agent takes up its line; the end of the guest wakes us too.
            await self._has_agent.wait()
            self._require()
            await self._agent.ask("guest-ping", timeout_s=_ASK_TIMEOUT_S)

    async def ask_agent(self, command: str, **arguments: Any) -> Any:
        """Ask the agent of the guest something, by the agent's own names.

        Raises:
            AgentRefusedError: It says no.
            MachineError: It does not answer.
        """
        self._require()
        return await self._agent.ask(command, timeout_s=_ASK_TIMEOUT_S, **arguments)

    async def run(self, wanted: Execution, streams: Streams) -> int:
        """Run a program through the agent; what it wrote comes when it has ended."""
        await self.boot()
        given = bytearray()
        while chunk := await streams.stdin.read():
            given += chunk
        path, *words = _command(wanted)
        started = await self.ask_agent(
            "guest-exec",
            path=path,
            arg=words,
            env=[f"{name}={value}" for name, value in wanted.env.items()],
            input_data=base64.b64encode(given).decode(),
            capture_output=True,
        )
        while True:
            # The agent does not tell of the end of a program.
            done = await self.ask_agent("guest-exec-status", pid=started["pid"])
            if done["exited"]:
                break
            await asyncio.sleep(_LOOK_AGAIN_S)
        for name, sink in (("out-data", streams.stdout), ("err-data", streams.stderr)):
            if done.get(name):
                await sink.write(base64.b64decode(done[name]))
        return 128 + int(done["signal"]) if "signal" in done else int(done.get("exitcode", 0))

    async def read_file(self, path: str, limit: int) -> bytes:
        """Read a file through the agent."""
        content = bytearray()
        async with self._file(path, "r") as handle:
            while len(content) < limit:
                count = min(_FILE_CHUNK, limit - len(content))
                found = await self.ask_agent("guest-file-read", handle=handle, count=count)
                content += base64.b64decode(found["buf-b64"])
                if found["eof"] or not found["count"]:
                    break
        return bytes(content)

    async def write_file(self, path: str, content: bytes) -> None:
        """Write a file through the agent."""
        async with self._file(path, "w") as handle:
            for start in range(0, len(content), _FILE_CHUNK):
                chunk = base64.b64encode(content[start : start + _FILE_CHUNK]).decode()
                await self.ask_agent("guest-file-write", handle=handle, buf_b64=chunk)

    async def users(self) -> tuple[str, ...]:
        """Tell of no one: the guest has an SSH server of its own, which knows its users."""
        return ()

    async def authorized_keys(self, user: str) -> tuple[str, ...]:
        """Tell of no keys, as above."""
        del user
        return ()

    async def accepts_password(self, user: str, password: str) -> bool:
        """Accept none, as above."""
        del user, password
        return False

    async def host_keys(self) -> tuple[str, ...]:
        """Tell of no keys, as above."""
        return ()

    async def dial(self, port: int, source: str | None = None) -> socket.socket:
        """Refuse: every port of the guest has an endpoint, unless it has no address."""
        del port, source
        raise OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH))

    async def endpoint(self, port: int) -> Endpoint | None:
        """Return where a port of the guest is forwarded to, made when it is first asked for."""
        await self.power_on()
        guest = self._world.guests.get(self._vmid)
        address = None if guest is None else first_address(self._world, guest, "net0")
        if port not in self._ends and address is not None:
            await self._monitor.human(f"hostfwd_add net0 tcp:127.0.0.1:0-{address}:{port}")
            listed = await self._monitor.human("info usernet")
            for found in _FORWARDED.finditer(listed):
                if int(found[3]) == port:
                    self._ends[port] = Endpoint(host="127.0.0.1", port=int(found[1]))
        return self._ends.get(port)

    async def execute(self, command: str) -> Any:
        """Have QEMU do something, by its own name of it.

        Raises:
            MachineError: It refuses, or has ended.
        """
        self._require()
        return await self._monitor.execute(command)

    async def status(self) -> Mapping[str, Any]:
        """Return what QEMU says of the guest: `running`, and `status` with the reason if it does not."""
        found: Mapping[str, Any] = await self.execute("query-status")
        return found

    async def wait_until_ended(self) -> None:
        """Wait until QEMU has ended."""
        if self._process is not None:
            await asyncio.wait({self._process.exited})

    async def pause(self) -> None:
        """Stop the processor."""
        await self.execute("stop")

    async def resume(self) -> None:
        """Let the processor continue."""
        await self.execute("cont")

    @contextlib.asynccontextmanager
    async def freeze(self) -> AsyncIterator[None]:
        """Hold the guest still for the length of the block, with all that it wrote on its disks."""
        status = await self.status() if self.is_running else {}
        if not status.get("running"):
            yield
            return
        await self.pause()
        try:
            yield
        finally:
            await self.resume()

    @property
    def has_agent(self) -> bool:
        """Whether the agent in the guest has taken up its line."""
        return self.is_running and self._has_agent.is_set()

    @property
    def is_running(self) -> bool:
        """Whether QEMU runs."""
        return self._process is not None and not self._process.exited.done()

    async def stop(self) -> None:
        """Ask the guest to shut down, by its agent and by the power button, and wait for its end.

        Raises:
            MachineError: It did not end in time; it still runs.
        """
        running = self._process
        if running is None or not self.is_running:
            await self.kill()
            return
        self._agent.tell("guest-shutdown", mode="powerdown")
        with contextlib.suppress(MachineError):
            await self._monitor.execute("system_powerdown")
        done, _ = await asyncio.wait({running.exited}, timeout=_SHUTDOWN_TIMEOUT_S)
        if not done:
            raise MachineError(f"VM {self._vmid} does not shut down.")
        await self.kill()

    async def kill(self) -> None:
        """Pull the plug; concurrent callers wait for the same end."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._kill())
        await asyncio.shield(self._ending)

    async def _kill(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
        running, self._process = self._process, None
        if running is not None:
            await running.end(gently=True)
        await self._monitor.close()
        self._agent.close()

    def _start(self, argv: tuple[str, ...], inherited: tuple[int, ...]) -> None:
        command = process.Command(argv=argv, env=process.environment(), keeps_output=False, grace_s=5.0)
        try:
            self._process = process.start_attached(
                command, lambda _, line: self._said.append(line), inherited=inherited
            )
        except (process.ProgramMissingError, process.ProgramUnusableError) as err:
            raise MachineError(err.detail, remedy=err.remedy) from err
        self._watching = asyncio.create_task(self._watch(self._process))

    async def _monitor_up(self, sock: socket.socket) -> None:
        try:
            await self._monitor.connect(sock)
        except MachineError as err:
            await self.kill()
            said = " ".join(self._said[-3:])
            raise MachineError(f"QEMU does not start VM {self._vmid}: {said or err.detail}") from err

    def _handle_event(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "VSERPORT_CHANGE":
            if event["data"]["open"]:
                self._has_agent.set()
            else:
                self._has_agent.clear()

    async def _watch(self, running: process.Attached) -> None:
        await asyncio.wait({running.exited})
        self._has_agent.set()
        if running.returncode:
            said = f"QEMU of VM {self._vmid} ended with {running.returncode}: {' '.join(self._said[-3:])}"
            asyncio.get_running_loop().call_exception_handler({"message": said})
        self._on_end(self._vmid)

    def _require(self) -> None:
        if not self.is_running:
            raise MachineError(f"VM {self._vmid} does not run.")

    @contextlib.asynccontextmanager
    async def _file(self, path: str, mode: str) -> AsyncIterator[Any]:
        await self.boot()
        try:
            handle = await self.ask_agent("guest-file-open", path=path, mode=mode)
        except AgentRefusedError as err:
            number = next((number for text, number in _ERRORS.items() if text in err.detail), errno.EIO)
            raise OSError(number, os.strerror(number), path) from err
        try:
            yield handle
        finally:
            await self.ask_agent("guest-file-close", handle=handle)


def _command(wanted: Execution) -> list[str]:
    """Return a program and its arguments for the agent, which runs everything as root in /."""
    inner = shlex.join(wanted.argv) if wanted.argv is not None else wanted.line or "true"
    folder = "" if wanted.cwd is None else f"cd {shlex.quote(wanted.cwd)} && "
    if wanted.user == "root":
        return ["/bin/sh", "-c", f"{folder}{inner}"]
    return ["/usr/sbin/runuser", "-l", wanted.user, "-c", f"{folder}{inner}"]


@contextlib.asynccontextmanager
async def _deadline(seconds: float, what: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as err:
        raise MachineError(f"{what} within {seconds:g} s.") from err
