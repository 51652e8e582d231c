"""The options that every command takes, in any place of the command line.

They are read before the line is parsed, because they decide how even an error of the line itself is shown.
The parser knows them too, so that it accepts them everywhere and lists them in the help.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stackyard.base.errors import FileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

__all__ = ["CliSettings", "common_options", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CliSettings:
    """How the user wants to see the run."""

    is_json: bool = False
    is_events: bool = False
    is_verbose: bool = False
    no_color: bool = False


# The second is how other programs of this kind spell it.
_JSON = frozenset(("--json", "--json-output"))
# One letter says it all, but a habit from other programs says it twice.
_VERBOSE = re.compile("-v+")


def read_settings(argv: Sequence[str]) -> CliSettings:
    """Return the settings that a command line names before a `--`."""
    words = set(argv[: argv.index("--")] if "--" in argv else argv)
    return CliSettings(
        is_json=not words.isdisjoint(_JSON),
        is_events="--events" in words,
        is_verbose="--verbose" in words or any(map(_VERBOSE.fullmatch, words)),
        no_color="--no-color" in words,
    )


def common_options() -> list[click.Option]:
    """Return the options for the parser; all but `--chdir` were acted upon by `read_settings`."""
    return [
        _flag("--json", help="Print exactly one JSON object on standard output."),
        _flag("--events", help="Print JSON lines while the command runs."),
        _flag("-v", "--verbose", help="Show more detail."),
        _flag("--no-color", help="Use no colours (also: NO_COLOR)."),
        click.Option(
            ["--chdir"],
            metavar="DIR",
            # Each is relative to the one before, also where one is before the verb and one after it.
            multiple=True,
            shell_complete=_complete_folder,
            expose_value=False,
            is_eager=True,
            callback=_change_folder,
            help="Run in this folder instead of the current one.",
        ),
    ]


def _flag(*names: str, help: str) -> click.Option:
    return click.Option(list(names), is_flag=True, expose_value=False, help=help)


def _complete_folder(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem  # lazy: only a shell asks

    del ctx, param
    return [CompletionItem(incomplete, type="dir")]


def _change_folder(ctx: click.Context, param: click.Parameter, folders: tuple[str, ...]) -> None:
    del param
    for folder in folders:
        if not folder:
            raise UsageError("--chdir needs the name of a folder, and was given nothing.")
        try:
            os.chdir(folder)
        except OSError as err:
            if ctx.resilient_parsing:
                return  # A shell asks for completions of a line that is not finished.
            raise FileError.from_os_error(err, "change to the folder", folder) from err
