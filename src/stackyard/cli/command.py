"""Commands and groups of stackyard: common options everywhere, loaded when used, "did you mean"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.base.suggestions import did_you_mean
from stackyard.cli.lazy_module import load_module
from stackyard.cli.result import Result
from stackyard.cli.settings import common_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Command", "EarlyResult", "Group", "LazyCommand", "group"]

_COMMON = "Options of every command"
# How much of a word is quoted that is no command; no command is nearly as long.
_LONGEST_NAME = 60
# The first sentence of a help text, whole: the list is wrapped to the terminal anyway.
_LONGEST_LINE = 400


class EarlyResult(Exception):  # noqa: N818 -- not an error: it carries what was asked for
    """Ends the parsing with a result, because the user asked for help or the version."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result


class _CommonParameters:
    """What a command and a group have in common; to be mixed into click's own classes."""

    params: list[click.Parameter]

    def _add_common_options(self) -> None:
        self._common = common_options()
        self.params.extend(self._common)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return a help option that gives its text to the views instead of printing it."""
        return click.Option(
            ["--help", "-h"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_show_help,
            help="Show this help.",
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then those that every command has."""
        own = [
            param for param in self.params if isinstance(param, click.Option) and param not in self._common
        ]
        for title, params in (("Options", own), (_COMMON, [*self._common, self.get_help_option(ctx)])):
            rows = [row for param in params if param and (row := param.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)


class Command(_CommonParameters, click.Command):
    """A command whose callback returns a `Result`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._add_common_options()


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyCommand:
    """A command that is imported when it is used.

    Attributes:
        module: Where it is.
        name: What it is called there.
        help: Its line in the list of commands, so that the list needs no import.
        is_hidden: Whether it is for stackyard itself, and in no list.
    """

    module: str
    name: str
    help: str
    is_hidden: bool = False

    def load(self) -> click.Command:
        """Import it."""
        command = getattr(load_module(self.module), self.name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{self.module}.{self.name} is not a command")
        return command


class Group(_CommonParameters, click.Group):
    """A noun with verbs, or the program with its nouns.

    Args:
        later: Commands to import when they are used.
    """

    command_class = Command

    def __init__(self, *args: Any, later: Mapping[str, LazyCommand] | None = None, **kwargs: Any) -> None:
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(*args, **kwargs)
        self._later = dict(later or {})
        self._add_common_options()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, without loading any; hidden ones are for stackyard itself."""
        hidden = {name for name, later in self._later.items() if later.is_hidden}
        return sorted({*super().list_commands(ctx), *self._later} - hidden)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loading it if need be."""
        known = super().get_command(ctx, cmd_name)
        if known is None and cmd_name in self._later:
            known = self._later[cmd_name].load()
            self.add_command(known, cmd_name)
        return known

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which one may have been meant."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
            raise UsageError(f"`{ctx.command_path}` has no command `{shown}`.{self._suggest(ctx, name)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; without one, show a human the help, and call it a wrong usage."""
        if not ctx._protected_args and not ctx.args:
            raise EarlyResult(_verb_missing(ctx, self.list_commands(ctx)))
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, without loading any."""
        rows = [(name, self._line(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _line(self, ctx: click.Context, name: str) -> str:
        if name in self._later:
            return self._later[name].help
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_LONGEST_LINE) if command else ""

    def _suggest(self, ctx: click.Context, name: str) -> str:
        return did_you_mean(name, self.list_commands(ctx))


def group(name: str, **attributes: Any) -> Callable[[Callable[..., Any]], Group]:
    """Make a function's docstring the help of a group."""
    return click.group(name, cls=Group, **attributes)


def _show_help(ctx: click.Context, param: click.Parameter, is_wanted: bool) -> None:
    del param
    if is_wanted and not ctx.resilient_parsing:
        text = ctx.get_help()
        raise EarlyResult(Result(document={"help": text}, show=lambda writer: writer.lines(text)))


def _verb_missing(ctx: click.Context, verbs: list[str]) -> Result:
    from stackyard.base import diagnostics  # lazy: only wrong usage needs it

    text = ctx.get_help()
    error = UsageError(f"`{ctx.command_path}` needs a command: {', '.join(verbs)}.")
    return Result(
        document={"error": diagnostics.describe(error)},
        show=lambda writer: writer.lines(text),
        status=error.exit_status,
    )
