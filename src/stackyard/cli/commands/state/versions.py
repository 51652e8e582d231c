"""`stackyard state versions`: what a state held before, and what was refused."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.words import instant, local_time, size
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import Quarantined, Version

__all__ = ["describe_refused_write", "version_document", "versions"]


@click.command("versions", cls=Command)
@click.argument("name", shell_complete=complete_states)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="The number of entries to show.",
)
@click.option("--refused", is_flag=True, help="Show refused writes instead of versions.")
@store_options
def versions(name: str, limit: int, refused: bool, choice: StoreChoice) -> Result:
    """Show the versions of a state, newest first.

    Every write is kept until `state prune` deletes it. Refused writes are kept too, and no result of an apply
    is lost: --refused lists them, and `state show NAME --refused ID` shows one.
    """
    with open_service(choice) as service:
        if refused:
            service.head(name)
            kept = list(service.contents.list_quarantined(name))[-limit:][::-1]
            return Result(
                document={"name": name, "refused": [describe_refused_write(one) for one in kept]},
                show=lambda writer: _show_refused(writer, name, kept),
            )
        current = service.head(name).current
        found = list(itertools.islice(service.versions.newest_first(name), limit))
    number = None if current is None else current.number
    return Result(
        document={"name": name, "current": number, "versions": [version_document(one) for one in found]},
        show=lambda writer: _show(writer, name, found),
    )


def version_document(version: Version) -> dict[str, Any]:
    """Return a version for a program."""
    is_known = not version.is_encrypted
    return {
        "number": version.number,
        "serial": version.serial,
        "lineage": version.lineage,
        "kind": version.kind.value,
        "written_at": instant(version.at),
        "by": version.principal,
        "address": version.address,
        "lock_id": version.lock_id or None,
        "size": version.size,
        "sha256": version.sha256,
        "resources": version.resources if is_known else None,
        "instances": version.instances if is_known else None,
        "outputs": version.outputs if is_known else None,
        "engine_version": version.engine_version or None,
        "is_encrypted": version.is_encrypted,
        "note": version.note or None,
    }


def describe_refused_write(one: Quarantined) -> dict[str, Any]:
    """Return a refused write for a program."""
    return {
        "id": one.id,
        "at": instant(one.at),
        "reason": one.reason,
        "serial": one.serial,
        "lineage": one.lineage,
        "size": one.size,
        "sha256": one.sha256,
        "by": one.principal,
        "address": one.address,
        "lock_id": one.lock_id or None,
    }


def _show(writer: TextWriter, name: str, found: list[Version]) -> None:
    if not found:
        writer.line(f"{name} has no versions: nothing was written yet.")
        return
    rows = [
        (
            str(one.number),
            str(one.serial),
            local_time(one.at),
            one.principal,
            "encrypted" if one.is_encrypted else str(one.instances),
            size(one.size),
            one.note or one.kind.value,
        )
        for one in found
    ]
    writer.table(("version", "serial", "written", "by", "instances", "size", "how"), rows)


def _show_refused(writer: TextWriter, name: str, kept: list[Quarantined]) -> None:
    if not kept:
        writer.line(f"No write to {name} was refused.")
        return
    rows = [(one.id, str(one.serial), local_time(one.at), one.principal, one.reason) for one in kept]
    writer.table(("id", "serial", "at", "by", "why"), rows)
