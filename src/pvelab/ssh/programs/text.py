"""Tools that read, change and write text, as far as scripts of clients use them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pvelab.ssh.shell.streams import CaptureSink

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pvelab.ssh.shell.interpreter import Program, Shell
    from pvelab.ssh.shell.streams import Sink, Streams

__all__ = ["PROGRAMS", "basic_regex", "input_of"]

_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "0": "\0", "a": "\a", "r": "\r"}
_SEPARATED = re.compile(r"(.)((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1(g?)", re.DOTALL)


async def input_of(shell: Shell, program: str, paths: list[str], streams: Streams) -> tuple[bytes, int]:
    """Return what is in some files, or on standard input where there are none, and 1 if one was missing."""
    if not paths:
        return await streams.read_all(), 0
    captured = CaptureSink()
    status = await _copy(shell, program, paths, streams, captured)
    return captured.data, status


async def _copy(shell: Shell, program: str, paths: list[str], streams: Streams, sink: Sink) -> int:
    """Write what is in some files to a sink; return 1 if one was missing."""
    status = 0
    for path in paths:
        try:
            source = streams.stdin if path == "-" else await shell.files.source(path)
        except OSError as err:
            await streams.complain(f"{program}: {path}: {err.strerror}")
            status = 1
            continue
        while chunk := await source.read():
            await sink.write(chunk)
    return status


def basic_regex(pattern: str, *, extended: bool = False) -> re.Pattern[str]:
    """Return a pattern of grep or sed as Python understands it.

    Raises:
        re.error: It is none.
    """
    if extended:
        return re.compile(pattern)
    out: list[str] = []
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        if sign == "\\" and place + 1 < len(pattern):
            place += 1
            escaped = pattern[place]
            # What is special without a backslash elsewhere is special with one here.
            out.append(escaped if escaped in "(){}|+?" else f"\\{escaped}")
        elif sign == "[":
            end = pattern.find("]", place + 2)
            if end < 0:
                raise re.error("unmatched [")
            out.append(pattern[place : end + 1].replace("\\", "\\\\"))
            place = end
        else:
            out.append(f"\\{sign}" if sign in "(){}|+?" else sign)
        place += 1
    return re.compile("".join(out))


async def echo(_shell: Shell, words: list[str], streams: Streams) -> int:
    """Write its arguments."""
    arguments, newline, escapes = words[1:], "\n", False
    while arguments and re.fullmatch("-[neE]+", arguments[0]):
        flags = arguments.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags
    text = " ".join(arguments)
    if escapes:
        text = re.sub(r"\\([nt\\0ar])", lambda found: _ESCAPES[found[1]], text)
    await streams.stdout.write((text + newline).encode("utf-8", "surrogateescape"))
    return 0


async def cat(shell: Shell, words: list[str], streams: Streams) -> int:
    """Write what is in files."""
    return await _copy(shell, "cat", words[1:] or ["-"], streams, streams.stdout)


async def grep(shell: Shell, words: list[str], streams: Streams) -> int:
    """Write the lines that a pattern fits."""
    flags, rest = _flags(words[1:])
    if not rest or not flags <= set("qcivEFw"):
        await streams.complain("Usage: grep [-qcivEFw] PATTERN [FILE]...")
        return 2
    pattern = re.escape(rest[0]) if "F" in flags else rest[0]
    try:
        compiled = basic_regex(pattern, extended=bool(flags & set("EF")))
    except re.error as err:
        await streams.complain(f"grep: {err}")
        return 2
    wanted = f"\\b(?:{compiled.pattern})\\b" if "w" in flags else compiled.pattern
    compiled = re.compile(wanted, re.IGNORECASE if "i" in flags else 0)
    data, missing = await input_of(shell, "grep", rest[1:], streams)
    found = [line for line in _lines(data) if bool(compiled.search(line)) != ("v" in flags)]
    if "c" in flags:
        await streams.say(str(len(found)))
    elif "q" not in flags:
        await _write_lines(streams, found)
    return 2 if missing else int(not found)


async def cut(shell: Shell, words: list[str], streams: Streams) -> int:
    """Write single fields of each line."""
    options: dict[str, str] = {}
    rest, paths = words[1:], list[str]()
    while rest:
        word = rest.pop(0)
        if word[:2] in ("-d", "-f", "-c"):
            options[word[1]] = word[2:] or (rest.pop(0) if rest else "")
        else:
            paths.append(word)
    fields = re.fullmatch(r"(\d+)(-)?(\d+)?", options.get("f", ""))
    delimiter = options.get("d", "\t")
    if fields is None or len(delimiter) != 1 or "c" in options:
        await streams.complain("cut: you must specify a list of fields, as in: cut -d : -f 3")
        return 1
    first = int(fields[1])
    last = int(fields[3]) if fields[3] else (None if fields[2] else first)
    data, status = await input_of(shell, "cut", paths, streams)
    picked = []
    for line in _lines(data):
        parts = line.split(delimiter)
        picked.append(line if len(parts) == 1 else delimiter.join(parts[first - 1 : last]))
    await _write_lines(streams, picked)
    return status


async def wc(shell: Shell, words: list[str], streams: Streams) -> int:
    """Count lines, words or bytes."""
    flags, paths = _flags(words[1:])
    data, status = await input_of(shell, "wc", paths, streams)
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    await streams.say(" ".join(str(counts[flag]) for flag in "lwc" if not flags or flag in flags))
    return status


async def sed(shell: Shell, words: list[str], streams: Streams) -> int:
    """Delete or substitute in lines: `/pattern/d` and `s/pattern/text/g`, in place with -i."""
    flags, rest = _flags(words[1:])
    extended = bool(flags & set("Er"))
    try:
        edit = _sed_script(rest[0], extended=extended) if rest else None
    except re.error:
        edit = None
    if edit is None or not flags <= set("iEr"):
        await streams.complain("sed: the lab's sed knows /pattern/d and s/pattern/text/[g], with -i and -E")
        return 1
    if "i" not in flags:
        data, status = await input_of(shell, "sed", rest[1:], streams)
        await _write_lines(streams, edit(_lines(data)))
        return status
    for path in rest[1:]:
        data, status = await input_of(shell, "sed", [path], streams)
        if status:
            return 2
        sink = await shell.files.sink(path, append=False)
        await sink.write("".join(f"{line}\n" for line in edit(_lines(data))).encode())
        await sink.close()
    return 0


def _sed_script(script: str, *, extended: bool) -> Callable[[list[str]], list[str]] | None:
    deletion = re.fullmatch(r"/((?:\\.|[^/])*)/d", script)
    if deletion:
        pattern = basic_regex(deletion[1], extended=extended)
        return lambda lines: [line for line in lines if not pattern.search(line)]
    substitution = _SEPARATED.fullmatch(script[1:]) if script.startswith("s") else None
    if substitution is None:
        return None
    sought = basic_regex(substitution[2].replace(f"\\{substitution[1]}", substitution[1]), extended=extended)
    text = re.sub(r"\\(\d)|&", lambda found: f"\\g<{found[1] or 0}>", substitution[3])
    count = 0 if "g" in substitution[4] else 1
    return lambda lines: [sought.sub(text, line, count=count) for line in lines]


def _flags(words: list[str]) -> tuple[set[str], list[str]]:
    flags: set[str] = set()
    rest = list(words)
    while rest and re.fullmatch("-[A-Za-z]+", rest[0]):
        flags |= set(rest.pop(0)[1:])
    return flags, rest[1:] if rest and rest[0] == "--" else rest


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "surrogateescape")
    return text.removesuffix("\n").split("\n") if text else []


async def _write_lines(streams: Streams, lines: list[str]) -> None:
    if lines:
        await streams.stdout.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


PROGRAMS: Mapping[str, Program] = {
    "cat": cat,
    "cut": cut,
    "echo": echo,
    "grep": grep,
    "sed": sed,
    "wc": wc,
}
