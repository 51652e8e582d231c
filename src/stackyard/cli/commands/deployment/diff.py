"""`stackyard deployment diff`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.commands.deployment.view import difference_document, show_difference, version_document
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["diff"]


@click.command("diff", cls=Command)
@click.argument("before", default="@1")
@click.argument("after", default="@0")
@store_option
def diff(before: str, after: str, store: str | None) -> Result:
    """Show the differences between two versions, guest by guest.

    Without versions, this compares the current version with the one before it.

    \b
    stackyard deployment diff
    stackyard deployment diff 12 15
    """  # noqa: D301 - click reads the control character
    from stackyard.sources.deployment.difference import compare  # lazy: only when this verb runs
    from stackyard.sources.deployment.fetch import open_history  # lazy: as above
    from stackyard.sources.deployment.store import choose_version  # lazy: as above
    from stackyard.sources.deployment.text import parse  # lazy: as above

    with contextlib.closing(open_history(place_of(store))) as opened:
        versions = [choose_version(opened, before), choose_version(opened, after)]
        old, new = (
            parse(opened.read_version(one).data, f"{opened.label} (version {one.id})").data
            for one in versions
        )
    difference = compare(old, new)

    def show(writer: TextWriter) -> None:
        writer.line(f"From version {versions[0].id} to version {versions[1].id}:")
        show_difference(writer, difference)

    return Result(
        document={
            "before": version_document(versions[0]),
            "after": version_document(versions[1]),
            **difference_document(difference),
        },
        show=show,
    )
