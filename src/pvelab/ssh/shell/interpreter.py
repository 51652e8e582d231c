"""Running a script: on programs and files that are given, and on nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from pvelab.ssh.shell.parser import ShellSyntaxError, parse
from pvelab.ssh.shell.streams import BytesSource, CaptureSink, NullSink, Sink, Source, Streams
from pvelab.ssh.shell.syntax import (
    AndOr,
    Command,
    Function,
    Group,
    If,
    Literal,
    Part,
    Pipeline,
    Redirection,
    Script,
    Simple,
    Substitution,
    Variable,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Program", "Shell", "ShellFiles", "Streams"]

NOT_FOUND = 127
MISUSED = 2
_DEEPEST = 40
_FOLDERS = ("/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/")

Program = Callable[["Shell", list[str], Streams], Awaitable[int]]


class ShellFiles(Protocol):
    """The files that a script can redirect to and from."""

    async def source(self, path: str) -> Source:
        """Open a file to read.

        Raises:
            OSError: It is not there, or no file.
        """
        ...

    async def sink(self, path: str, *, append: bool) -> Sink:
        """Open a file to write.

        Raises:
            OSError: There can be no file.
        """
        ...

    async def kind(self, path: str) -> str | None:
        """Return `file`, `folder` or None for nothing."""
        ...


class _ShellExit(Exception):  # noqa: N818 - not an error: `exit`, or a failure under `set -e`
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Shell:
    """One shell.

    Args:
        programs: What can be run, by name.
        files: What can be read and written.
        variables: Its variables, exported or not.
    """

    def __init__(
        self, programs: Mapping[str, Program], files: ShellFiles, variables: Mapping[str, str] | None = None
    ) -> None:
        self.programs = programs
        self.files = files
        self.variables = dict(variables or {})
        self.name = "bash"
        self.arguments: list[str] = []
        self.stops_at_errors = False
        self._functions: dict[str, Script] = {}
        self._status = 0
        self._substituted = 0
        self._depth = 0

    async def run(self, text: str, streams: Streams) -> int:
        """Run the text of a script and return its exit status."""
        try:
            script = parse(text)
        except ShellSyntaxError as err:
            await streams.complain(f"bash: -c: line 1: {err}")
            return MISUSED
        try:
            return await self._script(script, streams)
        except _ShellExit as left:
            return left.status

    def leave(self, status: int) -> None:
        """End the running script, as `exit` does."""
        raise _ShellExit(status)

    async def call(self, words: list[str], streams: Streams) -> int:
        """Run one program with its arguments."""
        name = words[0]
        program = self._program(name)
        if program is None:
            missing = "No such file or directory" if "/" in name else "command not found"
            await streams.complain(f"bash: line 1: {name}: {missing}")
            return NOT_FOUND
        return await program(self, words, streams)

    def subshell(self) -> Shell:
        """Return a shell that starts as this one is and changes nothing in it."""
        shell = Shell(self.programs, self.files, self.variables)
        shell.name, shell.arguments = self.name, list(self.arguments)
        shell.stops_at_errors = self.stops_at_errors
        shell._functions = dict(self._functions)
        shell._depth = self._depth
        shell._status = self._status
        return shell

    def _program(self, name: str) -> Program | None:
        for folder in _FOLDERS:
            if name.startswith(folder):
                return self.programs.get(name.removeprefix(folder))
        return self.programs.get(name)

    # --- Running

    async def _script(self, script: Script, streams: Streams, *, checked: bool = False) -> int:
        status = 0
        for line in script.lines:
            status = await self._and_or(line, streams, checked=checked)
        return status

    async def _and_or(self, line: AndOr, streams: Streams, *, checked: bool) -> int:
        status = 0
        for number, (operator, pipeline) in enumerate(line.steps):
            if (operator == "&&" and status != 0) or (operator == "||" and status == 0):
                continue
            is_last = number == len(line.steps) - 1
            status = await self._pipeline(pipeline, streams, checked=checked or not is_last)
            self._status = status
            if status and is_last and not checked and not pipeline.negated and self.stops_at_errors:
                raise _ShellExit(status)
        return status

    async def _pipeline(self, pipeline: Pipeline, streams: Streams, *, checked: bool) -> int:
        checked = checked or pipeline.negated
        if len(pipeline.commands) == 1:
            status = await self._command(pipeline.commands[0], streams, checked=checked)
        else:
            status = await self._run_pipeline(pipeline.commands, streams)
        return int(status == 0) if pipeline.negated else status

    async def _run_pipeline(self, commands: tuple[Command, ...], streams: Streams) -> int:
        """Run commands one after the other, each on what the one before has written."""
        source: Source = streams.stdin
        status = 0
        for number, command in enumerate(commands):
            is_last = number == len(commands) - 1
            captured = CaptureSink()
            own = Streams(stdin=source, stdout=streams.stdout if is_last else captured, stderr=streams.stderr)
            shell = self.subshell()
            try:
                status = await shell._command(command, own, checked=True)
            except _ShellExit as left:
                status = left.status
            source = BytesSource(captured.data)
        return status

    async def _command(self, command: Command, streams: Streams, *, checked: bool) -> int:
        match command:
            case Simple():
                return await self._simple(command, streams, checked=checked)
            case Group(script):
                return await self._script(script, streams, checked=checked)
            case Function(name, body):
                self._functions[name] = body
                return 0
            case If(branches, otherwise):
                for condition, body in branches:
                    if await self._script(condition, streams, checked=True) == 0:
                        return await self._script(body, streams, checked=checked)
                return 0 if otherwise is None else await self._script(otherwise, streams, checked=checked)

    async def _simple(self, command: Simple, streams: Streams, *, checked: bool) -> int:
        self._substituted = 0
        words = [field for word in command.words for field in await self._fields(word, streams)]
        values = {name: await self._text(word, streams) for name, word in command.assignments}
        if not words:
            self.variables.update(values)
            return self._substituted
        before = dict(self.variables)
        self.variables.update(values)
        try:
            async with self._redirect(command.redirections, streams) as own:
                return await self._run(words, own, checked=checked)
        except OSError as err:
            await streams.complain(f"bash: line 1: {err.filename}: {err.strerror}")
            return 1
        finally:
            for name in values:
                self.variables.pop(name, None)
                if name in before:
                    self.variables[name] = before[name]

    async def _run(self, words: list[str], streams: Streams, *, checked: bool) -> int:
        body = self._functions.get(words[0])
        if body is None:
            return await self.call(words, streams)
        if self._depth >= _DEEPEST:
            await streams.complain(f"bash: line 1: {words[0]}: maximum function nesting level exceeded")
            return 1
        before, self.arguments = self.arguments, words[1:]
        self._depth += 1
        try:
            return await self._script(body, streams, checked=checked)
        finally:
            self.arguments = before
            self._depth -= 1

    @contextlib.asynccontextmanager
    async def _redirect(
        self, redirections: tuple[Redirection, ...], streams: Streams
    ) -> AsyncIterator[Streams]:
        opened: list[Sink] = []
        own = {0: streams.stdin, 1: streams.stdout, 2: streams.stderr}
        for redirection in redirections:
            target = await self._text(redirection.target, streams)
            match redirection.operator:
                case ">&":
                    own[redirection.descriptor] = own[2 if target == "2" else 1]
                case "<":
                    own[0] = NullSink() if target == "/dev/null" else await self.files.source(target)
                case operator if target == "/dev/null":
                    own[redirection.descriptor] = NullSink()
                case operator:
                    sink = await self.files.sink(target, append=operator == ">>")
                    opened.append(sink)
                    own[redirection.descriptor] = sink
        yield Streams(stdin=own[0], stdout=own[1], stderr=own[2])  # type: ignore[arg-type]
        for sink in opened:
            await sink.close()

    # --- Words

    async def _text(self, word: Word, streams: Streams) -> str:
        """Return a word as one text: the value of an assignment, the target of a redirection."""
        return "".join([await self._value(part, streams) for part in word.parts])

    async def _fields(self, word: Word, streams: Streams) -> list[str]:
        """Return the arguments that a word becomes: none, one, or several where a value has spaces."""
        fields: list[str] = []
        current: str | None = None
        for part in word.parts:
            if isinstance(part, Variable) and part.name == "@" and part.quoted:
                fields, current = _join_pieces(fields, current, list(self.arguments))
                continue
            value = await self._value(part, streams)
            if part.quoted or isinstance(part, Literal):
                current = (current or "") + value
                continue
            pieces = value.split()
            if not pieces:
                continue
            if value[0].isspace() and current is not None:
                fields, current = [*fields, current], None
            fields, current = _join_pieces(fields, current, pieces)
            if value[-1].isspace() and current is not None:
                fields, current = [*fields, current], None
        return fields if current is None else [*fields, current]

    async def _value(self, part: Part, streams: Streams) -> str:
        match part:
            case Literal(text):
                return text
            case Variable(name, default, colon):
                value = self._variable(name)
                if value is None or (colon and not value):
                    return "" if default is None else await self._text(default, streams)
                return value
            case Substitution(script):
                captured = CaptureSink()
                shell = self.subshell()
                try:
                    self._substituted = await shell._script(
                        script, Streams(stdin=NullSink(), stdout=captured, stderr=streams.stderr)
                    )
                except _ShellExit as left:
                    self._substituted = left.status
                return captured.data.decode("utf-8", "surrogateescape").rstrip("\n")

    def _variable(self, name: str) -> str | None:
        match name:
            case "?":
                return str(self._status)
            case "#":
                return str(len(self.arguments))
            case "@" | "*":
                return " ".join(self.arguments)
            case "$":
                return "1000"
            case "0":
                return self.name
            case number if number.isdecimal():
                return self.arguments[int(number) - 1] if int(number) <= len(self.arguments) else None
        return self.variables.get(name)


def _join_pieces(fields: list[str], current: str | None, pieces: list[str]) -> tuple[list[str], str | None]:
    """Append pieces to what was read so far: the first continues the current field, the last stays open."""
    if not pieces:
        return fields, current
    first, *rest = pieces
    joined = [*fields, (current or "") + first, *rest]
    return joined[:-1], joined[-1]
