"""Commands in comments: `stackyard plan`, each on a line of its own in plain text.

::

    stackyard help                    what can be written
    stackyard plan                    plans again
    stackyard apply [TARGET]          approves the plan that is shown, and asks for it to be applied
    stackyard allow WHAT NAME         permits what the guard refuses: `allow destroy web`
    stackyard allow code COMMIT       lets code of this commit be planned
    stackyard unlock                  gives the targets back that this pull request holds

A comment is Markdown. What is shown as a quote, as code, as a part of a list or a table, or is not shown at
all, is no command: its author did not say it. Nothing here changes anything, or knows who may say what.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PERMITS", "Command", "Comment", "Verb", "read_commands"]

# Every option `--allow-…` of plan and apply by its word, and `code`.
PERMITS = frozenset(
    "code destroy disk-loss reboot migrate network-reload management-network lockout policy".split()
)
_MOST_LINES = 500
_MOST_COMMANDS = 20
_LONGEST_LINE = 1000
_NEWLINE = re.compile(r"\r\n|\r|\n")
_NAME = "stackyard"
# Of what a shell, Markdown or HTML would take for something else, nothing.
_WORD = re.compile(r"[A-Za-z0-9_.:/@\[\]\"'=,*+~-]{1,400}")
_TARGET = re.compile(r"[A-Za-z0-9_.:/@~+-]{1,300}")
# The whole number: who writes the code can make another commit that begins with the same digits.
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# A line that begins like this is, or may be, a part of something else than plain text.
_NOT_PLAIN = re.compile(r"[ \t>#|<*+=~:$\\-]|\d{1,9}[.)]|\[\^")
_TICKS = re.compile(r"`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
# What HTML holds is not shown, or not as text, until it ends.
_HIDDEN = (
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (
        re.compile(r"<(?:pre|script|style|textarea|details)\b", re.IGNORECASE),
        re.compile(r"</(?:pre|script|style|textarea|details)>", re.IGNORECASE),
    ),
)


class Verb(enum.StrEnum):
    """What a command asks for."""

    HELP = "help"
    PLAN = "plan"
    APPLY = "apply"
    ALLOW = "allow"
    UNLOCK = "unlock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command.

    Attributes:
        verb: What it asks for.
        target: The only target that it is about; empty for all.
        what: What it allows: `destroy`; empty for other commands.
        names: To what it allows that: guests, addresses, targets; a commit.
    """

    verb: Verb
    target: str = ""
    what: str = ""
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = (_NAME, self.verb.value, self.what, ",".join(self.names), self.target)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """What a comment says.

    Attributes:
        commands: Its commands, each once, in their order.
        misunderstood: What is wrong with lines that look like commands; in words of ours alone.
    """

    commands: tuple[Command, ...] = ()
    misunderstood: tuple[str, ...] = ()


class _NoCommandError(Exception):
    """A line looks like a command and is none."""


def read_commands(body: str) -> Comment:
    """Return the commands of a comment."""
    commands: dict[Command, None] = {}
    misunderstood: dict[str, None] = {}
    for line in _plain_lines(body):
        words = line.split()
        if words[0] != _NAME or len(words) < 2:
            continue
        try:
            command = _read(words[1:])
        except _NoCommandError as err:
            misunderstood[str(err)] = None
            continue
        if command is not None:
            commands[command] = None
    return Comment(
        commands=tuple(commands)[:_MOST_COMMANDS], misunderstood=tuple(misunderstood)[:_MOST_COMMANDS]
    )


def _read(words: list[str]) -> Command | None:
    """Return a command; None for a sentence that begins with our name.

    Raises:
        _NoCommandError: It looks like one, and is none.
    """
    word, *rest = words
    try:
        verb = Verb(word)
    except ValueError:
        meant = closest(word, [verb.value for verb in Verb])
        if meant is None:
            return None
        raise _NoCommandError(f"There is no such command. `{meant}` may be meant.") from None
    if verb is Verb.ALLOW:
        return _read_allow(rest)
    if verb is Verb.APPLY and len(rest) == 1:
        if not _TARGET.fullmatch(rest[0]) or rest[0].startswith("-"):
            raise _NoCommandError("What is behind `apply` is the name of no target.")
        return Command(verb=verb, target=rest[0])
    if rest:
        raise _NoCommandError(f"Nothing but the command may be on its line: there is more behind `{word}`.")
    return Command(verb=verb)


def _read_allow(rest: list[str]) -> Command:
    if len(rest) != 2:
        raise _NoCommandError("It is written `allow WHAT NAME`, with several names as `NAME,NAME`.")
    what, said = rest
    if what not in PERMITS:
        raise _NoCommandError(f"What can be allowed: {', '.join(sorted(PERMITS))}.")
    names = tuple(dict.fromkeys(filter(None, said.split(","))))
    if what == "code":
        if len(names) != 1 or not _COMMIT.fullmatch(names[0]):
            raise _NoCommandError(
                "It is written `allow code COMMIT`, with the whole commit as the plan shows it."
            )
    # What begins like an option would be one in a command line.
    elif not names or not all(_WORD.fullmatch(name) and not name.startswith("-") for name in names):
        raise _NoCommandError("What is behind it is no name of a guest, an address or a target.")
    return Command(verb=Verb.ALLOW, what=what, names=names)


def _plain_lines(body: str) -> Iterator[str]:
    """Yield the lines that are shown as plain text."""
    paragraph: list[str] = []
    for line in (*_shown_lines(body), ""):
        if line.strip(" \t"):
            paragraph.append(line.rstrip(" \t"))
            continue
        yield from _plain_paragraph(paragraph)
        paragraph = []


def _plain_paragraph(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a paragraph; nothing of one with mark-up that may go on into the next line."""
    # A quote, a list or a heading takes up the lines behind it, a line of `=` those before it.
    if any(_NOT_PLAIN.match(line) or _leaves_code_open(line) for line in lines):
        return
    yield from (line for line in lines if len(line) <= _LONGEST_LINE and line.isprintable())


def _leaves_code_open(line: str) -> bool:
    """Return whether a span of code may begin in a line and end in another one."""
    runs = _TICKS.findall(line)
    return len(runs) % 2 == 1 or any(len(run) > 1 for run in runs)


def _shown_lines(body: str) -> Iterator[str]:
    """Yield the lines outside of fences and of HTML, each of those as an empty line."""
    fence, hidden_until = "", None
    for line in _NEWLINE.split(body)[:_MOST_LINES]:
        if fence:
            found = _FENCE.fullmatch(line)
            if found and found[1].startswith(fence) and not found[2].strip(" \t"):
                fence = ""
            yield ""
        elif hidden_until is not None:
            if hidden_until.search(line):
                hidden_until = None
            yield ""
        elif (found := _FENCE.fullmatch(line)) and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            yield ""
        else:
            hidden_until = _find_hidden(line)
            yield line


def _find_hidden(line: str) -> re.Pattern[str] | None:
    """Return what ends the HTML that begins in a line; None where none is left open."""
    for begin, end in _HIDDEN:
        found = begin.search(line)
        if found is not None and not end.search(line, found.end()):
            return end
    return None
