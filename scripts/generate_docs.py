"""Write the pages of docs/reference that are made from the code; a test keeps them up to date."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import orjson

import pvelab
import stackyard
from pvelab.server import coverage
from stackyard.base import events
from stackyard.base.diagnostics import Kind, Severity
from stackyard.base.errors import ExitStatus, StackyardError
from stackyard.cli.root import root
from stackyard.controller.openapi import openapi, render_page
from stackyard.scenario.catalogue import SCENARIOS
from stackyard.scenario.model import Action, LazyAction
from stackyard.scenario.retired import RETIRED_SCENARIOS
from stackyard.sources.deployment.schema import read_schema
from stackyard.sources.site import fields, schema, schema_names

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Made by `make docs` from the code; do not edit. -->\n\n"


def main() -> int:
    """Write every generated page."""
    for name, make in PAGES.items():
        page = REFERENCE / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(make())
    return 0


def errors_page() -> str:
    """Return the list of every code, what it means and what to do."""
    lines = [
        NOTE + "# Errors\n",
        "Every error has a stable code, says what is wrong and where, and what to do. With `--json` the same",
        "is the object `error`. Warnings begin with `W-` and stop nothing.\n",
        "| code | exit | what it means | what to do |",
        "|---|---|---|---|",
    ]
    rows = [*(error_row(error) for error in all_errors()), *(kind_row(kind) for kind in all_kinds())]
    return "\n".join([*lines, *sorted(set(rows))]) + "\n"


def cell(text: str) -> str:
    """Return text that stays inside its cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def error_row(error: type[StackyardError]) -> str:
    """Return the row of an error class."""
    meaning = inspect.getdoc(error) or ""
    first = meaning.split("\n\n")[0]
    told = cell(f"{error.summary}. {first}")
    return f"| `{error.code}` | {int(error.exit_status)} | {told} | {cell(error.default_remedy)} |"


def kind_row(kind: Kind) -> str:
    """Return the row of a kind of finding."""
    exit_status = int(ExitStatus.INVALID) if kind.severity is Severity.ERROR else "-"
    return f"| `{kind.code}` | {exit_status} | {cell(kind.summary)}. | {cell(kind.remedy)} |"


IN_GUESTS = "pvelab.machines.guest.site"


def modules() -> Iterator[object]:
    """Import and return every module but those that exist for the guests of a lab alone."""
    for package in (pvelab, stackyard):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__") and IN_GUESTS not in found.name:
                yield importlib.import_module(found.name)


def all_errors() -> list[type[StackyardError]]:
    """Return every class of the error tree."""
    list(modules())
    known: list[type[StackyardError]] = [StackyardError]
    for error in known:
        known.extend(sub for sub in error.__subclasses__() if sub not in known)
    return [error for error in known if error.__module__.startswith(("stackyard.", "pvelab."))]


def all_kinds() -> list[Kind]:
    """Return every kind of finding that is a constant of a module."""
    found = {value for module in modules() for value in vars(module).values() if isinstance(value, Kind)}
    return sorted(found, key=lambda kind: kind.code)


def cli_page() -> str:
    """Return the help of every command."""
    parts = [NOTE + "# Command line\n\nWhat `--help` shows, for every command.\n"]
    for path, command, ctx in all_commands():
        parts.append(f"## {path}\n\n```text\n{command.get_help(ctx)}\n```\n")
    return "\n".join(parts)


def all_commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Return every command with the path that a user types."""
    pending: list[tuple[str, click.Command, click.Context | None]] = [("stackyard", root, None)]
    while pending:
        name, command, parent = pending.pop(0)
        ctx = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
        yield ctx.command_path, command, ctx
        if isinstance(command, click.Group):
            named = ((verb, command.get_command(ctx, verb)) for verb in command.list_commands(ctx))
            pending.extend((verb, sub, ctx) for verb, sub in named if sub is not None)


def scenarios_page() -> str:
    """Return every scenario with its phases."""
    lines = [
        NOTE + "# Scenarios\n",
        "Run one with `stackyard scenario run NAME`; [how to](../howto/scenarios.md) tells more. A run that",
        "takes longer than given here is stopped, unless `--timeout` says otherwise.\n",
    ]
    for scenario in SCENARIOS:
        lines += [
            f"## {scenario.name}\n",
            f"{scenario.summary} It runs on {scenario.place.value}, usually takes "
            f"{scenario.expected_s:.0f} s, and is stopped after {scenario.timeout_s:.0f} s.\n",
            "| phase | what it does | action |",
            "|---|---|---|",
            *(
                f"| `{phase.name}` | {phase.description}{'; always runs' if phase.always else ''} | "
                f"`{action_name(phase.action)}` |"
                for phase in scenario.phases
            ),
            "",
        ]
    lines += [
        "## Retired names\n",
        "| legacy scenario | its command now |",
        "|---|---|",
        *(f"| `{name}` | `{command}` |" for name, command in RETIRED_SCENARIOS.items()),
    ]
    return "\n".join(lines) + "\n"


def action_name(action: Action) -> str:
    """Return what an action is called."""
    return action.name if isinstance(action, LazyAction) else type(action).__name__


def events_schema() -> str:
    """Return the JSON Schema of `--events`."""
    return orjson.dumps(events.schema(), option=orjson.OPT_INDENT_2).decode() + "\n"


def deployment_schema() -> str:
    """Return the shipped schema of the deployment object."""
    return read_schema().decode()


def site_schema(entity: str) -> str:
    """Return the JSON Schema of a kind of file in a site."""
    return orjson.dumps(schema.schema_of(entity), option=orjson.OPT_INDENT_2).decode() + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "controller-api.json": lambda: orjson.dumps(openapi(), option=orjson.OPT_INDENT_2).decode() + "\n",
    "controller-api.md": lambda: NOTE + render_page(),
    "errors.md": errors_page,
    "cli.md": cli_page,
    "events.schema.json": events_schema,
    "lab-coverage.md": coverage.render,
    "scenarios.md": scenarios_page,
    "site-fields.md": lambda: NOTE + fields.render(),
    "schema/deployment.json": deployment_schema,
    **{f"schema/{entity}.json": functools.partial(site_schema, entity) for entity in schema_names.ENTITIES},
}

if __name__ == "__main__":
    sys.exit(main())
