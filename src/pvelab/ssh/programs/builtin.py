"""What a shell itself has: conditions, variables, its own end, other shells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Streams

__all__ = ["PROGRAMS"]


async def succeed(_shell: Shell, _words: list[str], _streams: Streams) -> int:
    """Do nothing, successfully."""
    return 0


async def fail(_shell: Shell, _words: list[str], _streams: Streams) -> int:
    """Do nothing, unsuccessfully."""
    return 1


async def leave(shell: Shell, words: list[str], _streams: Streams) -> int:
    """End the script."""
    shell.leave(int(words[1]) & 0xFF if len(words) > 1 and words[1].isdecimal() else 0)
    return 0


async def export(shell: Shell, words: list[str], _streams: Streams) -> int:
    """Set variables; all of them are seen by every program of the lab."""
    for word in words[1:]:
        name, sign, value = word.partition("=")
        if sign:
            shell.variables[name] = value
    return 0


async def unset(shell: Shell, words: list[str], _streams: Streams) -> int:
    """Forget variables."""
    for name in words[1:]:
        shell.variables.pop(name, None)
    return 0


async def set_option(shell: Shell, words: list[str], streams: Streams) -> int:
    """Take `set -e` and what goes with it; options that change nothing here are accepted."""
    for place, word in enumerate(words[1:], start=2):
        if word == "--":
            shell.arguments = words[place:]
            return 0
        if not re.fullmatch(r"[-+][eux]+|[-+]o|errexit|pipefail|nounset|xtrace", word):
            await streams.complain(f"bash: line 1: set: {word}: invalid option")
            return 2
        if word == "errexit" or (word[0] in "-+" and "e" in word):
            shell.stops_at_errors = word[0] != "+"
    return 0


async def test(shell: Shell, words: list[str], streams: Streams) -> int:
    """Compare texts and numbers, look for files."""
    arguments = words[1:]
    if words[0] == "[":
        if not arguments or arguments[-1] != "]":
            await streams.complain("bash: line 1: [: missing `]'")
            return 2
        arguments = arguments[:-1]
    negated = len(arguments) > 1 and arguments[0] == "!"
    if negated:
        arguments = arguments[1:]
    found = await _condition(shell, arguments)
    if found is None:
        await streams.complain(f"bash: line 1: {words[0]}: {' '.join(arguments)}: expression not understood")
        return 2
    return int(found == negated)


async def _condition(shell: Shell, arguments: list[str]) -> bool | None:
    match arguments:
        case []:
            return False
        case [text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case ["-n", text]:
            return bool(text)
        case [("-e" | "-f" | "-d" | "-s" | "-r" | "-w" | "-x") as flag, path]:
            return await _file_condition(shell, flag, path)
        case [left, ("=" | "=="), right]:
            return left == right
        case [left, "!=", right]:
            return left != right
        case [left, ("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") as operator, right]:
            return _numbers(left, operator, right)
    return None


async def _file_condition(shell: Shell, flag: str, path: str) -> bool:
    kind = await shell.files.kind(path)
    if flag == "-d":
        return kind == "folder"
    return kind == "file" if flag in ("-f", "-s") else kind is not None


def _numbers(left: str, operator: str, right: str) -> bool | None:
    try:
        one, other = int(left), int(right)
    except ValueError:
        return None
    return {
        "-eq": one == other,
        "-ne": one != other,
        "-lt": one < other,
        "-le": one <= other,
        "-gt": one > other,
        "-ge": one >= other,
    }[operator]


async def shell_program(shell: Shell, words: list[str], streams: Streams) -> int:
    """Run `bash -c script` in a shell of its own; without -c, the script on standard input."""
    rest = words[1:]
    stops = False
    while rest and rest[0].startswith("-"):
        flags = rest.pop(0)
        stops = stops or "e" in flags
        if "c" in flags:
            break
    else:
        if rest:
            await streams.complain(f"{words[0]}: {rest[0]}: the lab has no scripts in files")
            return 127
        rest = [(await streams.read_all()).decode("utf-8", "surrogateescape")]
    if not rest:
        await streams.complain(f"{words[0]}: -c: option requires an argument")
        return 2
    inner = shell.subshell()
    inner.stops_at_errors = stops
    inner.name = rest[1] if len(rest) > 1 else inner.name
    inner.arguments = rest[2:]
    return await inner.run(rest[0], streams)


async def command(shell: Shell, words: list[str], streams: Streams) -> int:
    """Run a program, or with -v return whether there is one."""
    if words[1:2] == ["-v"]:
        found = [name for name in words[2:] if name.rpartition("/")[2] in shell.programs]
        for name in found:
            await streams.say(name if "/" in name else f"/usr/bin/{name}")
        return int(not found)
    return await shell.call(words[1:], streams) if len(words) > 1 else 0


PROGRAMS: Mapping[str, Program] = {
    ":": succeed,
    "[": test,
    "bash": shell_program,
    "command": command,
    "exit": leave,
    "export": export,
    "false": fail,
    "set": set_option,
    "sync": succeed,
    "sh": shell_program,
    "test": test,
    "true": succeed,
    "unset": unset,
}
