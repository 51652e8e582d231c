"""Write the pages of docs/reference that are made from the code; a test keeps them up to date."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import orjson

import pvelab
import stackyard
from pvelab.server import coverage
from scripts.version import NEXT
from stackyard.base import events
from stackyard.base.diagnostics import Kind
from stackyard.base.errors import StackyardError
from stackyard.cli.error_codes import read_explanations
from stackyard.cli.root import root
from stackyard.controller.openapi import openapi, render_page
from stackyard.scenario.catalogue import SCENARIOS
from stackyard.scenario.model import Action, LazyAction
from stackyard.scenario.retired import RETIRED_SCENARIOS
from stackyard.sources.cluster import bootstrap_page
from stackyard.sources.cluster import page as cluster_page
from stackyard.sources.cluster import schema as cluster_files
from stackyard.sources.deployment.schema import read_schema
from stackyard.sources.hypervisor import fields as hypervisor_fields
from stackyard.sources.site import fields, schema, schema_names

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
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
        "is the object `error`. Warnings begin with `W-` and stop nothing. `stackyard explain-error CODE`",
        "prints what is here. A code without an exit status is a finding of another error, or of a plan.\n",
        "| code | exit | what it means | what to do |",
        "|---|---|---|---|",
    ]
    rows = [*(error_row(error) for error in all_errors()), *(kind_row(kind) for kind in all_kinds())]
    return "\n".join([*lines, *sorted(set(rows)), *explanation_lines()]) + "\n"


def explanation_lines() -> list[str]:
    """Return the longer explanations, a heading each."""
    lines = [
        "\n## Explanations\n",
        "The codes that are met most: why the check exists, typical causes, what to check.\n",
    ]
    for code, more in sorted(read_explanations().items()):
        lines.append(f"### {code}\n\n{more.text}\n\nSee [{more.page}](../{more.page}).\n")
    return [*lines[:-1], lines[-1].rstrip()]


def catalogue() -> str:
    """Return every code, for the program to look up."""
    found: dict[str, dict[str, object]] = {}
    for error in all_errors():
        meaning = (inspect.getdoc(error) or "").split("\n\n")[0]
        found[error.code] = {
            "summary": error.summary,
            "meaning": " ".join(meaning.split()),
            "remedy": error.default_remedy,
            "exit_status": int(error.exit_status),
        }
    for kind in all_kinds():
        found[kind.code] = {"summary": kind.summary, "remedy": kind.remedy}
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    return orjson.dumps(found, option=options).decode() + "\n"


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
    return f"| `{kind.code}` | - | {cell(kind.summary)}. | {cell(kind.remedy)} |"


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


LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+\.md)\)")


def llms_page() -> str:
    """Return the index of the documentation as programs read it (llmstxt.org): links with a line each."""
    index = (DOCS / "README.md").read_text()
    about = (ROOT / "README.md").read_text()
    lines = ["# stackyard", "", f"> {first_sentence(about)}", "", LLMS_INTRODUCTION]
    for section in index.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        lines += ["", f"## {title}", ""]
        for _, target in LINK.findall(text):
            page = (DOCS / target).read_text()
            found = re.search(r"^# (.+)$", page, re.MULTILINE)
            said = first_sentence(page)
            lines.append(f"- [{found[1] if found else target}]({target}){': ' + said if said else ''}")
    return "\n".join(lines) + "\n"


LLMS_INTRODUCTION = (
    "Change a site in this order: edit its files, `stackyard site validate`, `stackyard plan TARGET`, show"
    " the plan to a person, `stackyard apply TARGET`. Every command takes `--json`."
    " `stackyard explain-error CODE` explains an error. AGENTS.md in a site says what never to do."
)


def first_sentence(page: str) -> str:
    """Return the first sentence of a page's first paragraph, without marks."""
    _, _, text = page.partition("\n# ") if not page.startswith("# ") else ("", "", page)
    for part in text.partition("\n")[2].split("\n\n"):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        if plain[:1].isalnum() or plain.startswith("`"):
            return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].rstrip(":")
    return ""


def compatibility_page() -> str:
    """Return the page that compares stackyard with the systems before it, with its rows counted."""
    page = (REFERENCE / "compatibility.md").read_text()
    statuses = ("works", "differs", "not yet")
    rows, totals = [], [0, 0, 0]
    for section in page.split("\n## ")[1:]:
        name = section.partition("\n")[0]
        counts = [len(re.findall(rf"^\|.*[^\\]\| {status} \|", section, re.MULTILINE)) for status in statuses]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        anchor = re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-")
        rows.append(f"| [{name}](#{anchor}) | {' | '.join(map(str, counts))} |")
    head = "| system | works | differs | not yet |\n|---|---|---|---|\n"
    said = f"Totals: {totals[0]} work, {totals[1]} differ, {totals[2]} not yet.\n\n{head}" + "\n".join(rows)
    return re.sub(r"Totals: .*?\n\n.*?(?=\n\n)", lambda found: said, page, count=1, flags=re.DOTALL)


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


def cluster_schema(kind: str) -> str:
    """Return the JSON Schema of a file of a Talos cluster."""
    return orjson.dumps(cluster_files.cluster_schema(kind), option=orjson.OPT_INDENT_2).decode() + "\n"


# By their paths from docs/reference.
PAGES: dict[str, Callable[[], str]] = {
    "../llms.txt": llms_page,
    "../../src/stackyard/cli/error_codes/catalogue.json": catalogue,
    "controller-api.json": lambda: orjson.dumps(openapi(NEXT), option=orjson.OPT_INDENT_2).decode() + "\n",
    "controller-api.md": lambda: NOTE + render_page(),
    "compatibility.md": compatibility_page,
    "errors.md": errors_page,
    "cli.md": cli_page,
    "events.schema.json": events_schema,
    "lab-coverage.md": coverage.render,
    "scenarios.md": scenarios_page,
    "site-fields.md": lambda: NOTE + fields.render(),
    "hypervisors.md": lambda: NOTE + hypervisor_fields.render(),
    "clusters.md": lambda: NOTE + cluster_page.render(),
    "bootstrap.md": lambda: NOTE + bootstrap_page.render(),
    "schema/deployment.json": deployment_schema,
    **{f"schema/{kind}.json": functools.partial(cluster_schema, kind) for kind in cluster_files.FILES},
    **{f"schema/{entity}.json": functools.partial(site_schema, entity) for entity in schema_names.ENTITIES},
}

if __name__ == "__main__":
    sys.exit(main())
