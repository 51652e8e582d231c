"""Command lines in texts for readers: each has to name commands and options that the program has."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click

from stackyard.cli.root import root
from stackyard.cli.spellings import translate_legacy_arguments

__all__ = ["command_lines", "find_unknown"]

_SPAN = re.compile(r"`+(stackyard [^`\n]*)`+")
_BLOCK = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)
# Given to every command, and taken out of the command line before it.
_COMMON = {"--json", "--events", "-v", "--verbose", "--no-color", "--chdir", "-h", "--help"}


def command_lines(text: str) -> Iterator[str]:
    """Yield every command line of the program in a Markdown text: in spans of code and in blocks of shell."""
    for block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.strip().removeprefix("$ ").startswith("stackyard "):
                yield line.strip().removeprefix("$ ")
    for span in _SPAN.findall(_BLOCK.sub("", text)):
        yield span.replace("\\|", "|")


def find_unknown(line: str) -> str | None:
    """Return the first word of a command line that the program does not have; None where it has all."""
    words = shlex.split(line, comments=True)[1:]
    # What comes behind the program in a pipe, or where its output goes, is not its own.
    ends = ("|", ">", ">>", "2>", "&&", "...", "...;")
    end = next((number for number, word in enumerate(words) if word in ends), None)
    words = translate_legacy_arguments([word for word in words[:end] if word != "…"])
    command: click.Command = root
    ctx = click.Context(command, info_name="stackyard")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(ctx, words[0])
        if found is None:
            has_default = any(not isinstance(one, click.Option) for one in command.params)
            return None if has_default else words[0]
        command, ctx = found, found.make_context(words.pop(0), [], parent=ctx, resilient_parsing=True)
    known = _COMMON | {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    given = words[: words.index("--")] if "--" in words else words
    options = (word.partition("=")[0] for word in given if re.match(r"--?[A-Za-z]", word))
    # Options with one dash are those of the engine, where a command passes them on.
    if ctx.ignore_unknown_options:
        options = (option for option in options if option.startswith("--"))
    return next((option for option in options if option not in known), None)
