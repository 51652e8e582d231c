"""`stackyard state versions`: what a state held before, and what was refused."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, open_service, store_options
from stackyard.cli.states.words import instant, local_time, size

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.state import Quarantined, Version

__all__ = ["refused_document", "version_document", "versions"]


@click.command("versions", cls=Command)
@click.argument("name")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="How many to show."
)
@click.option("--refused", is_flag=True, help="Show the writes that were refused, in place of the versions.")
@store_options
def versions(name: str, limit: int, refused: bool, choice: StoreChoice) -> Result:
    """Show what a state held before, the newest first.

    Every write is kept until `state prune` drops it. A write that a rule refused is kept too, so that no
    result of an apply is lost: --refused shows those, and `state show NAME --refused ID` what is in one.
    """
    with open_service(choice) as service:
        if refused:
            service.head(name)
            kept = list(service.contents.quarantined(name))[-limit:][::-1]
            return Result(
                document={"name": name, "refused": [refused_document(one) for one in kept]},
                show=lambda paper: _show_refused(paper, name, kept),
            )
        current = service.head(name).current
        found = list(itertools.islice(service.versions.newest_first(name), limit))
    number = None if current is None else current.number
    return Result(
        document={"name": name, "current": number, "versions": [version_document(one) for one in found]},
        show=lambda paper: _show(paper, name, found),
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


def refused_document(one: Quarantined) -> dict[str, Any]:
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


def _show(paper: Paper, name: str, found: list[Version]) -> None:
    if not found:
        paper.line(f"{name} has no versions: nothing was written yet.")
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
    paper.table(("version", "serial", "written", "by", "instances", "size", "how"), rows)


def _show_refused(paper: Paper, name: str, kept: list[Quarantined]) -> None:
    if not kept:
        paper.line(f"No write to {name} was refused.")
        return
    rows = [(one.id, str(one.serial), local_time(one.at), one.principal, one.reason) for one in kept]
    paper.table(("id", "serial", "at", "by", "why"), rows)
