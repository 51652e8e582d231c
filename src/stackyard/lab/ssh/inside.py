"""Inside a guest: the few commands that can be run there, and what they tell.

`pct exec` and a guest's own SSH server come here. A guest has no files but a handful, and no programs but
those of the shell, `cat`, `echo`, `hostname`, `id` and `whoami`.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from stackyard.lab.problems import PveError
from stackyard.lab.resources.qemu.userdata import hostname_of
from stackyard.lab.ssh.programs import builtin, text
from stackyard.lab.ssh.shell import Shell
from stackyard.lab.ssh.shell.streams import Given
from stackyard.lab.ssh.system_files import OS_RELEASE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.lab.ssh.seat import Seat
    from stackyard.lab.ssh.shell.interpreter import Program
    from stackyard.lab.ssh.shell.streams import Sink, Source, Streams
    from stackyard.lab.store import Document

__all__ = ["guest_shell", "host_name", "run_in_container"]

_TEXT_PROGRAMS = ("cat", "cut", "echo", "grep", "wc")
# What an unprivileged container is given if nobody says otherwise.
_DEFAULT_MAP = ((0, 100000, 65536),)
_WHOLE_MAP = ((0, 0, 4294967295),)
_FIRST_UID = 1000


async def run_in_container(seat: Seat, vmid: int, command: list[str], streams: Streams) -> int:
    """Run a command in a container as root.

    Raises:
        PveError: There is no such container on the node, or it does not run.
    """
    guest = seat.world.guests.require("lxc", seat.node, vmid)
    if guest["status"] != "running":
        raise PveError(f"container '{vmid}' not running!")
    if not command:
        raise PveError("no command given")
    return await guest_shell(guest, "root").call(command, streams)


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


def host_name(guest: Document) -> str:
    """Return what a guest calls itself."""
    if guest["type"] == "qemu":
        return hostname_of(int(guest["vmid"]), guest["config"])[0]
    return str(guest["config"].get("hostname", f"CT{guest['vmid']}")).partition(".")[0]


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
        found = self._texts().get(path)
        if found is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return Given(found.encode())

    async def sink(self, path: str, *, append: bool) -> Sink:
        del append
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)

    async def kind(self, path: str) -> str | None:
        texts = self._texts()
        if path in texts:
            return "file"
        return "folder" if any(name.startswith(f"{path.rstrip('/')}/") for name in texts) else None

    def _texts(self) -> dict[str, str]:
        found = {"/etc/hostname": f"{host_name(self._guest)}\n", "/etc/os-release": OS_RELEASE}
        if self._guest["type"] == "lxc":
            found |= {f"/proc/self/{kind}id_map": _id_map(self._guest, kind) for kind in "ug"}
        return found


def _id_map(guest: Document, kind: str) -> str:
    """Return how the user (or group) numbers of a container stand for those of its node."""
    config = guest["config"]
    own = []
    for key, value in config.get("lxc", ()):
        words = str(value).split()
        if key == "lxc.idmap" and len(words) == 4 and words[0] == kind:
            own.append(tuple(map(int, words[1:])))
    maps = own or (_DEFAULT_MAP if config.get("unprivileged") else _WHOLE_MAP)
    return "".join(f"{inside:>10} {outside:>10} {count:>10}\n" for inside, outside, count in maps)
