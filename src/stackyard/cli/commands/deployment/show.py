"""`stackyard deployment show`."""

from __future__ import annotations

import contextlib

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.commands.deployment.view import version_document
from stackyard.cli.result import Result

__all__ = ["show"]


@click.command("show", cls=Command)
@click.argument("version", default="@0")
@store_option
def show(version: str, store: str | None) -> Result:
    """Print a VERSION of the object; without VERSION, the current one.

    Name a version by its ID, by the beginning of its ID, or as `@1`: one before the current.
    """
    from stackyard.sources.deployment.fetch import open_history  # lazy: only when this verb runs
    from stackyard.sources.deployment.store import choose_version  # lazy: as above
    from stackyard.sources.deployment.text import parse  # lazy: as above

    with contextlib.closing(open_history(place_of(store))) as opened:
        found = opened.read_version(choose_version(opened, version))
        label = opened.label
    document = parse(found.data, f"{label} (version {found.version.id})")
    return Result(
        document={
            "store": label,
            "version": version_document(found.version),
            "fingerprint": found.fingerprint,
            "object": document.data,
        },
        show=lambda writer: writer.text(document.text),
    )
