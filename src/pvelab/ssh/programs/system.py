"""Programs for the files and the users of a node."""

from __future__ import annotations

import asyncio
import posixpath
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.files import NodeFiles, OpenFile
    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Sink, Source, Streams
    from pvelab.ssh.shell_session import ShellSession

__all__ = ["ShellFileAccess", "require_root_at", "system_programs"]

_CHUNK = 256 * 1024
_FIRST_UID = 1000


class ShellFileAccess:
    """The files of a node as a shell reaches them; only root writes.

    Args:
        files: The files.
        as_root: Whether it is root who reaches for them.
    """

    def __init__(self, files: NodeFiles, *, as_root: bool) -> None:
        self._files = files
        self.as_root = as_root

    async def source(self, path: str) -> Source:
        """Open a file to read."""
        return _FileReader(self._files.open(path))

    async def sink(self, path: str, *, append: bool) -> Sink:
        """Open a file to write."""
        self.require_root(path)
        return _FileWriter(self._files.open(path, write=True, keep=append))

    async def kind(self, path: str) -> str | None:
        """Return `file`, `folder` or None for nothing."""
        found = self._files.find(path)
        return None if found is None else ("folder" if found.is_folder else "file")

    def require_root(self, path: str) -> None:
        """Refuse anyone who is not root.

        Raises:
            PermissionError: It is not root.
        """
        if not self.as_root:
            raise PermissionError(13, "Permission denied", path)


class _FileReader:
    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._place = 0

    async def read(self) -> bytes:
        # A large file must not keep everyone else waiting.
        await asyncio.sleep(0)
        data = self._file.read_at(self._place, _CHUNK)
        self._place += len(data)
        if not data:
            self._file.abandon()
        return data


class _FileWriter:
    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._place = file.size

    async def write(self, data: bytes) -> None:
        self._file.write_at(self._place, data)
        self._place += len(data)

    async def close(self) -> None:
        await self._file.close()


def system_programs(session: ShellSession) -> Mapping[str, Program]:
    """Return the programs for someone at a node."""
    programs = _SystemPrograms(session)
    return {
        "chmod": programs.chmod,
        "hostname": programs.hostname,
        "id": programs.id,
        "lab-guests": programs.lab_guests,
        "ls": programs.ls,
        "mkdir": programs.mkdir,
        "rm": programs.rm,
        "stat": programs.stat,
        "sudo": programs.sudo,
        "tee": programs.tee,
        "uname": programs.uname,
        "whoami": programs.whoami,
    }


class _SystemPrograms:
    def __init__(self, session: ShellSession) -> None:
        self._session = session
        self._files = session.files

    async def tee(self, shell: Shell, words: list[str], streams: Streams) -> int:
        append = words[1:2] in (["-a"], ["--append"])
        sinks, status = [], 0
        for path in words[2 if append else 1 :]:
            try:
                sinks.append((path, await shell.files.sink(path, append=append)))
            except OSError as err:
                await streams.complain(f"tee: {path}: {err.strerror}")
                status = 1
        while chunk := await streams.stdin.read():
            await streams.stdout.write(chunk)
            for _, sink in sinks:
                await sink.write(chunk)
        for path, sink in sinks:
            try:
                await sink.close()
            except OSError as err:
                await streams.complain(f"tee: {path}: {err.strerror}")
                status = 1
        return status

    async def ls(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        flags, paths = _split(words)
        status = 0
        for path in paths or ["."]:
            try:
                found = self._files.require(path)
                entries = self._files.entries(path) if found.is_folder else [found]
            except OSError as err:
                await streams.complain(f"ls: cannot access '{path}': {err.strerror}")
                status = 2
                continue
            for entry in entries:
                name = posixpath.basename(entry.path) if found.is_folder else path
                kind = stat.S_IFDIR if entry.is_folder else stat.S_IFREG
                shown = f"{stat.filemode(kind | entry.mode)} 1 root root {entry.size} {name}"
                await streams.say(shown if "l" in flags else name)
        return status

    async def rm(self, shell: Shell, words: list[str], streams: Streams) -> int:
        flags, paths = _split(words)
        status = 0
        for path in paths:
            try:
                require_root_at(shell, path)
                self._files.remove(path)
            except FileNotFoundError as err:
                if "f" not in flags:
                    await streams.complain(f"rm: cannot remove '{path}': {err.strerror}")
                    status = 1
            except OSError as err:
                await streams.complain(f"rm: cannot remove '{path}': {err.strerror}")
                status = 1
        return status

    async def mkdir(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        flags, paths = _split(words)
        status = 0
        for path in paths:
            try:
                self._files.make_folder(path)
            except OSError as err:
                if not (isinstance(err, FileExistsError) and "p" in flags):
                    await streams.complain(f"mkdir: cannot create directory '{path}': {err.strerror}")
                    status = 1
        return status

    async def chmod(self, shell: Shell, words: list[str], streams: Streams) -> int:
        if len(words) < 3 or not re.fullmatch("[0-7]{3,4}", words[1]):
            await streams.complain("chmod: the lab's chmod knows octal modes only, as in: chmod 644 FILE")
            return 1
        for path in words[2:]:
            try:
                require_root_at(shell, path)
                self._files.set_mode(path, int(words[1], 8))
            except OSError as err:
                await streams.complain(f"chmod: cannot access '{path}': {err.strerror}")
                return 1
        return 0

    async def stat(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        if len(words) != 4 or words[1] not in ("-c", "--format"):
            await streams.complain("stat: the lab's stat knows -c FORMAT FILE, with %s, %a, %F and %n")
            return 1
        try:
            found = self._files.require(words[3])
        except OSError as err:
            await streams.complain(f"stat: cannot statx '{words[3]}': {err.strerror}")
            return 1
        kind = "directory" if found.is_folder else "regular file"
        facts = {"s": str(found.size), "a": f"{found.mode:o}", "F": kind, "n": words[3]}
        await streams.say(re.sub("%([saFn])", lambda sign: facts[sign[1]], words[2]))
        return 0

    async def sudo(self, shell: Shell, words: list[str], streams: Streams) -> int:
        rest = words[1:]
        while rest and rest[0] in ("-n", "-E", "-H", "--"):
            rest.pop(0)
        if not rest:
            await streams.complain("usage: sudo [-n] command [arg ...]")
            return 1
        inner = shell.subshell()
        inner.files = ShellFileAccess(self._files, as_root=True)
        return await inner.call(rest, streams)

    async def id(self, shell: Shell, words: list[str], streams: Streams) -> int:
        is_root = _is_root(shell)
        number, name = (0, "root") if is_root else (_FIRST_UID, self._session.user)
        match words[1:]:
            case ["-u" | "-g" | "-G"]:
                await streams.say(str(number))
            case ["-un" | "-gn"] | ["-u" | "-g", "-n"] | ["-n", "-u" | "-g"]:
                await streams.say(name)
            case _:
                await streams.say(f"uid={number}({name}) gid={number}({name}) groups={number}({name})")
        return 0

    async def whoami(self, shell: Shell, _words: list[str], streams: Streams) -> int:
        await streams.say("root" if _is_root(shell) else self._session.user)
        return 0

    async def hostname(self, _shell: Shell, _words: list[str], streams: Streams) -> int:
        await streams.say(self._session.node)
        return 0

    async def lab_guests(self, _shell: Shell, _words: list[str], streams: Streams) -> int:
        """Say what guests are made of here, and why of nothing better; a real node has no such program."""
        maker = await self._session.world.machines.maker()
        await streams.say(f"{maker.kind}: {maker.reason}" if maker.reason else str(maker.kind))
        return 0

    async def uname(self, _shell: Shell, words: list[str], streams: Streams) -> int:
        facts = {"-s": "Linux", "-n": self._session.node, "-m": "x86_64"}
        await streams.say(" ".join(facts.get(word, "") for word in words[1:]) or "Linux")
        return 0


def _split(words: list[str]) -> tuple[set[str], list[str]]:
    flags = {letter for word in words[1:] if word.startswith("-") for letter in word[1:]}
    return flags, [word for word in words[1:] if not word.startswith("-")]


def _is_root(shell: Shell) -> bool:
    return isinstance(shell.files, ShellFileAccess) and shell.files.as_root


def require_root_at(shell: Shell, path: str) -> None:
    """Refuse anyone at a shell who is not root.

    Raises:
        PermissionError: It is not root.
    """
    if isinstance(shell.files, ShellFileAccess):
        shell.files.require_root(path)
