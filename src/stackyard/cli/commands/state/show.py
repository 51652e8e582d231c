"""`stackyard state show`: what a state holds, as a summary; as it is only where that is asked for by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.versions import describe_refused_write, version_document
from stackyard.cli.commands.state.words import brief, plain
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result
from stackyard.cli.settings import read_settings

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import StateService

__all__ = ["show"]

_STDOUT = "-"


@click.command("show", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option(
    "--version",
    "number",
    type=click.IntRange(1),
    metavar="N",
    help="An earlier version (default: the current one).",
)
@click.option("--refused", metavar="ID", help="A refused write (`state versions NAME --refused`).")
@click.option(
    "--raw",
    metavar="FILE",
    help="Write the raw state, with secrets in clear, to a file that only you can read; - is "
    "standard output.",
)
@store_options
def show(name: str, number: int | None, refused: str | None, raw: str | None, choice: StoreChoice) -> Result:
    """Show the resources and outputs of a state, without secrets.

    \b
    stackyard state show env/dev/pve1
    stackyard state show env/dev/pve1 --version 12
    stackyard state show env/dev/pve1 --raw saved.tfstate
    stackyard state show env/dev/pve1 --raw - | jq .serial
    """  # noqa: D301 - click reads the control character
    if raw == _STDOUT:
        _require_no_terminal()
    if number is not None and refused is not None:
        raise UsageError("--version and --refused name two contents; give one.")
    with open_service(choice) as service:
        facts, data = _read(service, name, number, refused)
    if raw is not None:
        return _make_result(name, facts, data, raw)
    return _summary(name, facts, data)


def _require_no_terminal() -> None:
    settings = read_settings(sys.argv[1:])
    if settings.is_json or settings.is_events:
        raise UsageError("--raw - prints the state and nothing else; leave out --json and --events.")
    if sys.stdout.isatty():
        raise UsageError(
            "A state holds secrets in clear: send --raw - to a program or file, not to a terminal."
        )


def _read(
    service: StateService, name: str, number: int | None, refused: str | None
) -> tuple[dict[str, Any], bytes]:
    """Return what is known of a content, and the content."""
    from stackyard.state import VersionMissingError  # lazy: only when this verb runs

    if refused is not None:
        found, data = service.contents.read_quarantined(name, refused)
        return describe_refused_write(found), data
    head = service.head(name)
    if number is None and head.current is None:
        raise VersionMissingError(f"Nothing was written to {name} yet.")
    version = service.versions.get(name, number or (0 if head.current is None else head.current.number))
    return version_document(version), service.versions.read(name, version)


def _make_result(name: str, facts: dict[str, Any], data: bytes, raw: str) -> Result:
    if raw == _STDOUT:
        return Result(document={}, show=lambda writer: writer.text(data.decode()))
    from stackyard.base.files import replace_file  # lazy: only when something is written

    replace_file(Path(raw), data)
    return Result(
        document={"name": name, "version": facts, "raw": raw},
        show=lambda writer: writer.line(f"Wrote serial {facts['serial']} of {name} to {raw}, for you alone."),
    )


def _summary(name: str, facts: dict[str, Any], data: bytes) -> Result:
    from stackyard.state.inside import EncryptedStateError, make_mask, read_view  # lazy: only when this runs

    document: dict[str, Any] = {"name": name, "version": facts, "instances": None, "outputs": None}
    try:
        view = read_view(data)
    except EncryptedStateError:
        return Result(document=document, show=lambda writer: _show(writer, document))
    mask = make_mask([view])
    document["instances"] = [
        {"address": one.address, "type": one.type, "mode": one.mode, "status": one.status or None}
        for one in view.instances.values()
    ]
    document["outputs"] = {key: plain(output.format(mask)) for key, output in view.outputs.items()}
    return Result(document=document, show=lambda writer: _show(writer, document))


def _show(writer: TextWriter, document: dict[str, Any]) -> None:
    facts = document["version"]
    writer.line(document["name"], style="green")
    keys = ("number", "serial", "lineage", "written_at", "by", "size", "engine_version", "reason", "note")
    for key in keys:
        if facts.get(key) is not None:
            writer.line(f"  {key.replace('_', ' '):<14} {facts[key]}")
    if document["instances"] is None:
        writer.line("  encrypted by the engine: what it holds is not known here")
        return
    for one in document["instances"]:
        writer.line(f"{one['address']}{' (tainted)' if one['status'] else ''}")
    for key, value in document["outputs"].items():
        writer.line(f"output {key} = {brief(value)}")
