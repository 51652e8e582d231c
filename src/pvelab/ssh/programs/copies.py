"""Programs that copy and move files of a node."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from pvelab.ssh.programs.system import require_root_at
from pvelab.ssh.programs.text import input_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.files import NodeFiles
    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Streams

__all__ = ["copy_programs"]


def copy_programs(files: NodeFiles) -> Mapping[str, Program]:
    """Return `cp` and `mv` for the files of a node."""

    async def copy(shell: Shell, words: list[str], streams: Streams) -> int:
        """Copy one file."""
        paths = [word for word in words[1:] if not word.startswith("-")]
        if len(paths) != 2:
            await streams.complain("cp: the lab's cp copies one file: cp SOURCE TARGET")
            return 1
        content, status = await input_of(shell, "cp", paths[:1], streams)
        if status:
            return status
        try:
            sink = await shell.files.sink(_target(files, *paths), append=False)
            await sink.write(content)
            await sink.close()
        except OSError as err:
            await streams.complain(f"cp: cannot create regular file '{paths[1]}': {err.strerror}")
            return 1
        return 0

    async def move(shell: Shell, words: list[str], streams: Streams) -> int:
        """Give one file another path."""
        paths = [word for word in words[1:] if not word.startswith("-")]
        if len(paths) != 2:
            await streams.complain("mv: the lab's mv moves one file: mv SOURCE TARGET")
            return 1
        try:
            require_root_at(shell, paths[1])
            files.rename(paths[0], _target(files, *paths))
        except OSError as err:
            await streams.complain(f"mv: cannot move '{paths[0]}' to '{paths[1]}': {err.strerror}")
            return 1
        return 0

    return {"cp": copy, "mv": move}


def _target(files: NodeFiles, source: str, target: str) -> str:
    """Return where a file goes: into a folder under its own name."""
    found = files.find(target)
    is_folder = found is not None and found.is_folder
    return posixpath.join(target, posixpath.basename(source)) if is_folder else target
