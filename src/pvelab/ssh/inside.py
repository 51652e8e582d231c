"""Inside a guest that has no sandbox: the few commands that can be run there, and what they tell.

Such a guest has no files but a handful, and no programs but those of the shell, `cat`, `echo`, `hostname`,
`id` and `whoami`; every other one is refused by name.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from pvelab.machines.clouddata import cloud_data, list_host_keys
from pvelab.machines.facts import host_name
from pvelab.machines.machine import Execution, MachineError
from pvelab.machines.recorded import RecordedMachine
from pvelab.server.problems import PveError
from pvelab.ssh.accounts import accounts_of
from pvelab.ssh.programs import builtin, text
from pvelab.ssh.shell import Shell
from pvelab.ssh.shell.streams import BytesSource, Streams
from pvelab.ssh.system_files import OS_RELEASE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.machines.machine import Sink as MachineSink
    from pvelab.machines.machine import Streams as MachineStreams
    from pvelab.ssh.shell.interpreter import Program
    from pvelab.ssh.shell.streams import Sink, Source
    from pvelab.ssh.shell_session import ShellSession
    from pvelab.world.store import Document
    from pvelab.world.world import World

__all__ = ["find_recorded_machine", "guest_shell", "run_in_container"]

_TEXT_PROGRAMS = ("cat", "cut", "echo", "grep", "wc")
# What an unprivileged container is given if no one says otherwise.
_DEFAULT_MAP = ((0, 100000, 65536),)
_WHOLE_MAP = ((0, 0, 4294967295),)
_FIRST_UID = 1000
_NOT_FOUND = 127
_NO_SANDBOX = (
    "This guest of the stackyard lab has no sandbox (bubblewrap), and answers these commands only: cat, cut,"
    " echo, grep, hostname, id, wc, whoami, and what a shell has itself."
)
_NO_SHELL = (
    "This guest of the stackyard lab has no interactive shell, because there is no sandbox (bubblewrap) here:"
    " give the command to run, as in `ssh guest hostname`."
)


async def run_in_container(session: ShellSession, vmid: int, command: list[str], streams: Streams) -> int:
    """Run a command in a container as root.

    Raises:
        PveError: There is no such container on the node, or it does not run.
    """
    guest = session.world.guests.require("lxc", session.node, vmid)
    if guest["status"] != "running":
        raise PveError(f"container '{vmid}' not running!")
    if not command:
        raise PveError("no command given")
    for kind in "ug":
        if command == ["cat", f"/proc/self/{kind}id_map"]:
            # A sandbox has numbers of its own, and everyone who asks wants those of the container.
            await streams.say(_id_map(guest, kind).removesuffix("\n"))
            return 0
    machine = await session.world.machines.of(guest)
    return await machine.run(Execution(argv=tuple(command)), streams)


def find_recorded_machine(world: World, vmid: int) -> RecordedMachine:
    """Return the inside of a guest that has no sandbox."""

    def present() -> Document:
        guest = world.guests.get(vmid)
        if guest is None:
            raise MachineError("The guest is gone.")
        return guest

    async def run(wanted: Execution, given: MachineStreams) -> int:
        streams = Streams(
            stdin=given.stdin, stdout=_SharedSink(given.stdout), stderr=_SharedSink(given.stderr)
        )
        shell = guest_shell(present(), wanted.user)
        if wanted.argv is not None:
            status = await shell.call(list(wanted.argv), streams)
        elif wanted.line is None:
            await streams.complain(_NO_SHELL)
            status = 1
        else:
            status = await shell.run(wanted.line, streams)
        if status == _NOT_FOUND:
            await streams.complain(_NO_SANDBOX)
        return status

    return RecordedMachine(
        accounts=lambda: accounts_of(world, present()),
        texts=lambda: _GuestFiles(present()).texts(),
        run=run,
        host_keys=lambda: list_host_keys(cloud_data(world, present())),
    )


class _SharedSink:
    """A sink of someone else's, which stays open."""

    def __init__(self, sink: MachineSink) -> None:
        self._sink = sink

    async def write(self, data: bytes) -> None:
        await self._sink.write(data)

    async def close(self) -> None:
        """Leave it to its owner."""


def guest_shell(guest: Document, user: str) -> Shell:
    """Return the shell of a user in a guest."""
    programs = _Programs(guest, user)
    table: Mapping[str, Program] = {
        **builtin.PROGRAMS,
        **{name: text.PROGRAMS[name] for name in _TEXT_PROGRAMS},
        "hostname": programs.hostname,
        "id": programs.id,
        "whoami": programs.whoami,
    }
    home = "/root" if user == "root" else f"/home/{user}"
    return Shell(table, _GuestFiles(guest), {"HOME": home, "USER": user})


class _Programs:
    def __init__(self, guest: Document, user: str) -> None:
        self._guest = guest
        self._user = user

    async def hostname(self, _shell: Shell, _words: list[str], streams: Streams) -> int:
        await streams.say(host_name(self._guest))
        return 0

    async def whoami(self, _shell: Shell, _words: list[str], streams: Streams) -> int:
        await streams.say(self._user)
        return 0

    async def id(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        number = 0 if self._user == "root" else _FIRST_UID
        match words[1:]:
            case ["-u" | "-g" | "-G"]:
                await streams.say(str(number))
            case ["-un" | "-gn"]:
                await streams.say(self._user)
            case _:
                shown = f"{number}({self._user})"
                await streams.say(f"uid={shown} gid={shown} groups={shown}")
        return 0


class _GuestFiles:
    """The handful of files in a guest, none of which can be written."""

    def __init__(self, guest: Document) -> None:
        self._guest = guest

    async def source(self, path: str) -> Source:
        found = self.texts().get(path)
        if found is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return BytesSource(found.encode())

    async def sink(self, path: str, *, append: bool) -> Sink:
        del append
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    async def kind(self, path: str) -> str | None:
        texts = self.texts()
        if path in texts:
            return "file"
        return "folder" if any(name.startswith(f"{path.rstrip('/')}/") for name in texts) else None

    def texts(self) -> dict[str, str]:
        """Return the files by path."""
        found = {"/etc/hostname": f"{host_name(self._guest)}\n", "/etc/os-release": OS_RELEASE}
        if self._guest["type"] == "lxc":
            found |= {f"/proc/self/{kind}id_map": _id_map(self._guest, kind) for kind in "ug"}
        return found


def _id_map(guest: Document, kind: str) -> str:
    """Return how the user (or group) numbers of a container map to those of its node."""
    config = guest["config"]
    own = []
    for key, value in config.get("lxc", ()):
        words = str(value).split()
        if key == "lxc.idmap" and len(words) == 4 and words[0] == kind:
            own.append(tuple(map(int, words[1:])))
    maps = own or (_DEFAULT_MAP if config.get("unprivileged") else _WHOLE_MAP)
    return "".join(f"{inside:>10} {outside:>10} {count:>10}\n" for inside, outside, count in maps)
