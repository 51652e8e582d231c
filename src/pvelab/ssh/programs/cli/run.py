"""Running a command: the subcommand is found, its options read, the call made, its task waited for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pvelab.server.problems import PveError
from pvelab.ssh.programs.cli.model import (
    FAILED,
    NOT_FOUND,
    Alias,
    Command,
    CommandCall,
    PrintedAnswer,
    UsageProblem,
)
from pvelab.ssh.programs.cli.options import OUTPUT_OPTIONS, read_options
from pvelab.ssh.programs.cli.output import RENDERERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pvelab.server.facts import Facts
    from pvelab.ssh.programs.cli.model import Tree
    from pvelab.ssh.shell.interpreter import Shell
    from pvelab.ssh.shell.streams import Streams
    from pvelab.ssh.shell_session import ShellSession

__all__ = ["Tool", "perform", "show_task", "tell_problem"]

_IN_PATH = re.compile(r"{([\w-]+)}")
# These take the rest of a path, slashes and all.
_WITH_SLASHES = frozenset(("volume", "cidr"))
_NO_FILE = re.compile(r"Configuration file '[^']*' does not exist")


class _UnknownCommand(Exception):  # noqa: N818 - the text of a usage message
    pass


class Tool:
    """A program with subcommands, such as `qm`, or without, such as `vzdump`.

    Args:
        name: Its name.
        tree: Its subcommands, or the one command that it is.
    """

    def __init__(self, name: str, tree: Tree | Command) -> None:
        self.name = name
        self.tree = tree

    async def run(self, session: ShellSession, shell: Shell, words: list[str], streams: Streams) -> int:
        """Run it with its words, the first of which is its name, and return its exit status."""
        facts = session.world.facts
        try:
            if isinstance(self.tree, Command):
                prefix, command, rest = self.name, self.tree, words[1:]
            else:
                if words[1:2] in (["help"], ["--help"], ["-h"]):
                    return await self._help(facts, words[2:], streams)
                prefix, command, rest = self._resolve(words[1:])
        except _UnknownCommand as problem:
            await streams.complain(f"ERROR: {problem}\n{self._usage(facts)}")
            return FAILED
        return await _run(session, shell, command, rest, streams, prefix=prefix)

    def _resolve(self, words: list[str]) -> tuple[str, Command, list[str]]:
        if not words:
            raise _UnknownCommand("no command specified")
        if isinstance(self.tree, Command):
            return self.name, self.tree, words
        found: Tree | Command = self.tree
        prefix, rest = self.name, list(words)
        while not isinstance(found, Command):
            if not rest:
                raise _UnknownCommand(f"incomplete command '{prefix}'")
            name = _expand_subcommand(found, rest.pop(0))
            entry = found.get(name)
            if isinstance(entry, Alias):
                rest = [*entry.words.split(), *rest]
                continue
            prefix = f"{prefix} {name}"
            if entry is None:
                raise _UnknownCommand(f"unknown command '{prefix}'")
            found = entry
        return prefix, found, rest

    async def _help(self, facts: Facts, words: list[str], streams: Streams) -> int:
        wanted = [word for word in words if not word.startswith("-")]
        shown = self._usage(facts)
        if wanted:
            start = " ".join((self.name, *wanted))
            lines = [
                line for line in _usages(facts, self.name, self.tree) if f"{line} ".startswith(f"{start} ")
            ]
            if not lines:
                await streams.complain(f"ERROR: unknown command '{start}'\n{shown}")
                return FAILED
            shown = "USAGE: " + "\n       ".join(lines)
        await streams.say(shown)
        return 0

    def _usage(self, facts: Facts) -> str:
        lines = [f"       {line}" for line in _usages(facts, self.name, self.tree)]
        return "\n".join([f"USAGE: {self.name} <COMMAND> [ARGS] [OPTIONS]", "", *lines])


def _expand_subcommand(tree: Tree, word: str) -> str:
    """Return the subcommand that a word names, which may be cut short as long as it is clear."""
    if word in tree:
        return word
    found = [name for name, entry in tree.items() if name.startswith(word) and not isinstance(entry, Alias)]
    return found[0] if len(found) == 1 else word


def _usages(facts: Facts, prefix: str, tree: Tree | Command | Alias) -> Iterator[str]:
    if isinstance(tree, Command):
        yield _usage_line(prefix, tree, _list_options(facts, tree))
    elif not isinstance(tree, Alias):
        for name in sorted(tree):
            yield from _usages(facts, f"{prefix} {name}", tree[name])


def _usage_line(prefix: str, command: Command, declared: Mapping[str, Any]) -> str:
    words = [prefix]
    if command.listed:
        words.append(f"{{<{command.listed}>}}")
    for name in command.arguments:
        words.append(f"[<{name}>]" if declared.get(name, {}).get("optional") else f"<{name}>")
    others = set(declared) - set(command.arguments) - set(command.fixed) - {"node", command.listed}
    if others - set(OUTPUT_OPTIONS):
        words.append("[OPTIONS]")
    if command.formats:
        words.append("[FORMAT_OPTIONS]")
    return " ".join(words)


def _list_options(facts: Facts, command: Command) -> dict[str, Mapping[str, Any]]:
    own = facts[command.route].parameters if command.route else {}
    return {**own, **command.parameters, **(OUTPUT_OPTIONS if command.formats else {})}


async def _run(
    session: ShellSession, shell: Shell, command: Command, words: list[str], streams: Streams, *, prefix: str
) -> int:
    declared = _list_options(session.world.facts, command)
    fixed = {**command.fixed, **({"node": session.node} if "{node}" in command.route else {})}
    usage = _usage_line(prefix, command, declared)
    try:
        given: dict[str, Any] = {"extra-args": words}
        if not command.is_raw:
            given = read_options(
                declared, words, arguments=command.arguments, fixed=fixed, listed=command.listed
            )
        options = {key: given.pop(key) for key in OUTPUT_OPTIONS if command.formats and key in given}
        asked = CommandCall(session=session, shell=shell, parameters=given, streams=streams)
        if command.own is not None:
            return await command.own(asked)
        if command.adapt is not None:
            given = dict(await command.adapt(asked))
        return await perform(session, command, given, streams, options=options)
    except UsageProblem as problem:
        for note in problem.notes:
            await streams.complain(note)
        await streams.complain(f"400 {problem}\n{usage}")
        return FAILED
    except PveError as err:
        return await tell_problem(err, streams, usage=usage)


async def perform(
    session: ShellSession,
    command: Command,
    parameters: Mapping[str, Any],
    streams: Streams,
    *,
    options: Mapping[str, Any] | None = None,
) -> int:
    """Make the call of a command, print its answer and return the exit status.

    Raises:
        PveError: The call is refused.
    """
    method, _, template = command.route.partition(" ")
    names = _IN_PATH.findall(template)
    values = {name: str(parameters.get(name, "")) for name in names}
    for name, value in values.items():
        if not value or ("/" in value and name not in _WITH_SLASHES):
            text = "Parameter verification failed."
            raise PveError(
                text, status=400, errors={name: f"invalid format - '{value}' is no part of a path"}
            )
    sent = {key: value for key, value in parameters.items() if key not in values and value is not None}
    data = await session.call(method, _IN_PATH.sub(lambda found: values[found[1]], template), sent)
    failed = await show_task(session, data, streams)
    if command.show is not None:
        shown = PrintedAnswer(
            data=data,
            schema=session.world.facts[command.route].returns,
            options=options or {},
            parameters=parameters,
            renderers=RENDERERS.get(template, {}),
            streams=streams,
        )
        await command.show(shown)
    return FAILED if failed and command.follows_task else 0


async def show_task(session: ShellSession, data: Any, streams: Streams) -> bool:
    """Wait for the task that a call has started, if it has, and print its log; True if the task failed.

    A command does the work of a task itself, so its log is what the command prints.
    """
    if not isinstance(data, str) or not data.startswith("UPID:"):
        return False
    async for line in session.world.tasks.follow(data):
        await streams.say(line)
    outcome = await session.finish(data)
    if outcome.problem is not None:
        await streams.complain(outcome.problem)
    elif outcome.warnings:
        await streams.complain(f"Task finished with {outcome.warnings} warning(s)!")
    return outcome.problem is not None


async def tell_problem(err: PveError, streams: Streams, *, usage: str = "") -> int:
    """Print why a call was refused as Perl prints an error, and return the exit status."""
    text = err.text.strip()
    if err.errors:
        await streams.complain(f"{err.status} {text}")
        for key, reason in err.errors.items():
            await streams.complain(f"{key}: {reason}")
        if usage and err.status == 400:
            await streams.complain(usage)
        return FAILED
    # A plain failure has no number in Perl; what answers with one says it.
    await streams.complain(text if err.status in (500, 501) else f"{err.status} {text}")
    return NOT_FOUND if _NO_FILE.search(text) else FAILED
