"""`stackyard deployment history`."""

from __future__ import annotations

import contextlib
import itertools

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.commands.deployment.view import show_versions, version_document
from stackyard.cli.result import Result

__all__ = ["history"]


@click.command("history", cls=Command)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="The number of entries to show.",
)
@store_option
def history(limit: int, store: str | None) -> Result:
    """Show the versions of the object, newest first.

    In a bucket, these are the bucket's own versions, including those that other programs wrote.
    """
    from stackyard.sources.deployment.fetch import open_history  # lazy: only when this verb runs

    with contextlib.closing(open_history(place_of(store))) as opened:
        found = list(itertools.islice(opened.history(), limit))
        label = opened.label
    return Result(
        document={"store": label, "versions": [version_document(one) for one in found]},
        show=lambda writer: show_versions(writer, found),
    )
