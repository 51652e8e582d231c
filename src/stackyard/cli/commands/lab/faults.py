"""`stackyard lab faults`: make calls, tasks, guests, storages and nodes of a lab fail on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import UsageError
from stackyard.cli.command import group
from stackyard.cli.commands.lab.view import name_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["faults"]

_OWN_COLUMNS = ("name", "kind", "seen", "struck")


@group("faults")
def faults() -> None:
    """Inject faults into requests, tasks, guests, storages and nodes.

    \b
    stackyard lab faults add answer method=POST path='/nodes/*/qemu' status=500 reason='got timeout' nth=2
    stackyard lab faults add drop when=after path='*/clone' times=1
    stackyard lab faults add task task=qmclone text='storage went away'
    stackyard lab faults add node-down node=pve2
    stackyard lab faults list
    stackyard lab faults clear

    `lab faults kinds` shows every kind of fault and its fields.
    """  # noqa: D301 - click reads the control character


@faults.command("list")
@name_option
def list_faults(name: str) -> Result:
    """Show the active faults, and how many requests each has seen and affected."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/faults")
    return Result(document=document, show=lambda writer: _show_faults(writer, document["faults"]))


@faults.command("kinds")
@name_option
def kinds(name: str) -> Result:
    """Show every kind of fault and its fields."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("GET", "/faults/kinds")
    return Result(document=document, show=lambda writer: _show_kinds(writer, document["kinds"]))


@faults.command("add")
@click.argument("kind")
@click.argument("fields", metavar="[FIELD=VALUE]...", nargs=-1)
@name_option
def add(kind: str, fields: tuple[str, ...], name: str) -> Result:
    """Add a fault. The field `fault=NAME` sets its name."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    sent: dict[str, Any] = {}
    for given in fields:
        key, sign, value = given.partition("=")
        if not sign:
            raise UsageError(f"'{given}' is no field: write FIELD=VALUE.")
        sent["name" if key == "fault" else key] = value
    document = lab_client(name).call("POST", "/faults", kind=kind, **sent)
    return Result(
        document=document, show=lambda writer: writer.line(f"Added the fault '{document['name']}'.")
    )


@faults.command("clear")
@click.argument("fault", required=False)
@name_option
def clear(fault: str | None, name: str) -> Result:
    """Remove one fault or all faults, and undo their effects."""
    from stackyard.cli.commands.lab.client import lab_client  # lazy: ssl, only when this verb runs

    document = lab_client(name).call("DELETE", "/faults" if fault is None else f"/faults/{fault}")
    removed = ", ".join(document["removed"]) or "nothing: there was no fault"
    return Result(document=document, show=lambda writer: writer.line(f"Removed {removed}."))


def _show_faults(writer: TextWriter, found: list[dict[str, Any]]) -> None:
    if not found:
        writer.line("No faults: the lab works as it should.")
        return
    rows = []
    for fault in found:
        told = " ".join(f"{key}={value}" for key, value in fault.items() if key not in _OWN_COLUMNS)
        counts = f"{fault['struck']} of {fault['seen']}" if "seen" in fault else "-"
        rows.append((fault["name"], fault["kind"], counts, told))
    writer.table(("fault", "kind", "struck", "fields"), rows)


def _show_kinds(writer: TextWriter, found: Mapping[str, Any]) -> None:
    for name, kind in found.items():
        writer.line(f"{name}: {kind['help']}", style="green")
        for key, field in kind["fields"].items():
            needed = " (needed)" if field["required"] else ""
            writer.line(f"  {key:<12} {field['help']}{needed}")
