"""`stackyard deployment show`."""

from __future__ import annotations

import contextlib

import click

from stackyard.cli.command import Command
from stackyard.cli.deployments.options import place_of, store_option
from stackyard.cli.deployments.view import version_document
from stackyard.cli.result import Result

__all__ = ["show"]


@click.command("show", cls=Command)
@click.argument("version", default="@0")
@store_option
def show(version: str, store: str | None) -> Result:
    """Print a VERSION of the object; without one, the current version.

    A version is named by its id, by the beginning of it, or as `@1`: one before the current.
    """
    from stackyard.deployment.fetch import open_history  # lazy: only when this verb runs
    from stackyard.deployment.store import choose_version  # lazy: as above
    from stackyard.deployment.text import parse  # lazy: as above

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
        show=lambda paper: paper.text(document.text),
    )
