"""The options that every command takes, in any place of the command line.

They are read before the line is parsed, because they decide how even an error of the line itself is shown.
The parser knows them too, so that it accepts them everywhere and lists them in the help.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stackyard.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Settings", "common_options", "read_settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the user wants to see the run."""

    is_json: bool = False
    is_events: bool = False
    is_verbose: bool = False
    no_color: bool = False


def read_settings(argv: Sequence[str]) -> Settings:
    """Return the settings that a command line names before a `--`."""
    words = set(argv[: argv.index("--")] if "--" in argv else argv)
    return Settings(
        is_json="--json" in words,
        is_events="--events" in words,
        is_verbose=bool(words & {"-v", "--verbose"}),
        no_color="--no-color" in words,
    )


def common_options() -> list[click.Option]:
    """Return the options for the parser; all but `--chdir` were acted upon by `read_settings`."""
    return [
        _flag("--json", help="Print exactly one JSON object on standard output."),
        _flag("--events", help="Print JSON lines while it runs."),
        _flag("-v", "--verbose", help="Show more of what happens."),
        _flag("--no-color", help="Use no colours (also: NO_COLOR)."),
        click.Option(
            ["--chdir"],
            metavar="DIR",
            expose_value=False,
            is_eager=True,
            callback=_change_folder,
            help="Work in another folder.",
        ),
    ]


def _flag(*names: str, help: str) -> click.Option:
    return click.Option(list(names), is_flag=True, expose_value=False, help=help)


def _change_folder(ctx: click.Context, param: click.Parameter, folder: str | None) -> None:
    del ctx, param
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as err:
        raise FileError.from_os_error(err, "change to the folder", folder) from err
