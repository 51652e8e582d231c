"""The options that the verbs of `stackyard infra` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import reach_options

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ENGINE_SETTINGS", "EngineCommand", "cluster_option", "engine_words", "run_options"]

Function = TypeVar("Function", bound="Callable[..., Any]")

# OpenTofu's own flags, such as -detailed-exitcode, need no `--` before them.
ENGINE_SETTINGS = {"ignore_unknown_options": True}

# No word of a command line can hold it.
_MARK = "\0"
_SHORT_OPTION = 2


class EngineCommand(Command):
    """A command that passes flags with one dash, such as `-target=ADDRESS`, on to OpenTofu as they are.

    click reads such a word as several options of one letter: it would take the `v` out of it for --verbose,
    and the `h` for --help.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; flags of OpenTofu are arguments."""
        return super().parse_args(ctx, [f"{_MARK}{word}" if _is_engine_flag(word) else word for word in args])


def _is_engine_flag(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and len(word) > _SHORT_OPTION


def _unmark(ctx: click.Context, param: click.Parameter, words: tuple[str, ...]) -> tuple[str, ...]:
    del ctx, param
    return tuple(word.removeprefix(_MARK) for word in words)


cluster_option = click.option(
    "--cluster", metavar="CLUSTER", help="The cluster, if the repository has more than one."
)
engine_words = click.argument(
    "engine_words", metavar="[ARGS...]", nargs=-1, type=click.UNPROCESSED, callback=_unmark
)


def run_options(function: Function) -> Function:
    """Add the cluster, how to run, and the arguments for OpenTofu."""
    return cluster_option(engine_words(reach_options(function)))
