"""How git is started: on a repository of anyone, without running what that repository names.

A repository can name programs: filters, hooks, a file system monitor, a pager, helpers for credentials, SSH
commands, external diffs. Some are switched off here for every command, by settings that go before those of
the repository. No setting switches off a filter, whose name is free: what reads a working tree therefore
runs with a git folder of our own (`staging`), and never with the settings of the repository.
Nothing that git does for us needs the network, so that it has no protocol to reach one.
"""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING

from stackyard.base import process
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = [
    "FILE_PROTOCOL",
    "OWN_SETTINGS",
    "GitError",
    "add_settings",
    "git_command",
    "read_git",
    "run_git",
    "stream_git",
]

_TIMEOUT_S = 300.0
_LARGEST_OUTPUT_BYTES = 512 * 2**20
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_HOOKS = {"core.hooksPath": os.devnull}
# Programs that a repository can name, each switched off.
_NO_PROGRAMS = {
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "true",
    "credential.helper": "",
    "diff.external": "",
    "gpg.program": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "diff.ignoreSubmodules": "all",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
# By these git tells a hook which index is about to be committed.
_FROM_HOOKS = frozenset(
    "GIT_DIR GIT_COMMON_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_PREFIX GIT_OBJECT_DIRECTORY "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_QUARANTINE_PATH GIT_CEILING_DIRECTORIES".split()
)
# What the user said with `git -c`, or for the whole session.
_SETTINGS_PREFIX = "GIT_CONFIG_"
_COUNT = f"{_SETTINGS_PREFIX}COUNT"
_ALWAYS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # An object that is missing is not fetched from where the repository says, by what it says.
    "GIT_NO_LAZY_FETCH": "1",
    # The content of an object is that of its own number, whatever refs/replace says.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ASKPASS": "false",
    "GIT_PAGER": "cat",
}
# For a repository of our own: neither the user nor the system decides anything about it.
OWN_SETTINGS: Mapping[str, str] = MappingProxyType(
    {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
)
# For a fetch from one repository of our own into another one.
FILE_PROTOCOL: Mapping[str, str] = MappingProxyType({"GIT_ALLOW_PROTOCOL": "file"})


class GitError(StackyardError):
    """git refused or failed, or there is no repository where one is needed."""

    code = "E-GIT"
    summary = "git could not do what was needed"
    default_remedy = "Run the command inside a git repository that you own."


def git_command(
    arguments: Sequence[str],
    folder: Path,
    *,
    extra: Mapping[str, str] = _NOTHING,
    stdin: bytes | None = None,
    timeout_s: float = _TIMEOUT_S,
    for_hook: bool = False,
    with_hooks_path: bool = False,
) -> process.Command:
    """Return a git command that runs nothing of what the repository names.

    Args:
        arguments: What git is to do.
        folder: Where.
        extra: More of its environment; goes before everything else.
        stdin: What it reads.
        timeout_s: When to give up on it.
        for_hook: Whether git may have started us as a hook, and its variables say which index is meant.
        with_hooks_path: Whether `core.hooksPath` is left as it is set, for a command that only asks for it.
    """
    given = {
        name: value
        for name, value in os.environ.items()
        if for_hook and (name in _FROM_HOOKS or name.startswith(_SETTINGS_PREFIX))
    }
    off = _NO_PROGRAMS if with_hooks_path else {**_NO_HOOKS, **_NO_PROGRAMS}
    return process.Command(
        argv=("git", *arguments),
        env=process.environment({**given, **_ALWAYS, **_settings(given, off), **extra}),
        cwd=folder,
        stdin=stdin,
        timeout_s=timeout_s,
        output_limit_bytes=_LARGEST_OUTPUT_BYTES,
        grace_s=0.5,
        # Whatever is left of it ends with the pipes, and servers start it often.
        ends_with_us=False,
    )


def add_settings(env: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a git command with more settings; their values are in no argument."""
    return {**env, **_settings(env, added)}


def _settings(given: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that add settings to those that are given; of the same name, the last counts."""
    first = int(given.get(_COUNT, "0")) if given.get(_COUNT, "0").isdigit() else 0
    found = {_COUNT: str(first + len(added))}
    for number, (name, value) in enumerate(added.items(), first):
        found |= {f"{_SETTINGS_PREFIX}KEY_{number}": name, f"{_SETTINGS_PREFIX}VALUE_{number}": value}
    return found


async def run_git(command: process.Command) -> str:
    """Run a git command, and return what it wrote; bytes that are no text stay what they are in paths.

    Raises:
        GitError: It failed, or wrote far more than it has any reason to.
    """
    return (await read_git(command)).decode("utf-8", "surrogateescape")


async def read_git(command: process.Command) -> bytes:
    """Run a git command, and return what it wrote.

    Raises:
        GitError: It failed, or wrote far more than it has any reason to.
    """
    read = bytearray()

    def add(chunk: bytes) -> None:
        read.extend(chunk)
        if len(read) > command.output_limit_bytes:
            raise GitError(f"`{command.shown}` wrote more than {command.output_limit_bytes} bytes.")

    await stream_git(command, add)
    return bytes(read)


async def stream_git(command: process.Command, on_bytes: process.OnBytes) -> None:
    """Run a git command, and pass on what it writes as it comes.

    Raises:
        GitError: It failed.
    """
    try:
        await process.run(command, on_bytes=on_bytes)
    except process.ProcessFailedError as err:
        raise GitError(err.detail) from err
