"""`stackyard deployment get`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.commands.deployment.view import version_document
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["get"]


@click.command("get", cls=Command)
@click.argument("file", required=False)
@store_option
@pass_session
def get(session: Session, /, file: str | None, store: str | None) -> Result:
    """Fetch the current object, and write it to FILE or print it.

    The command remembers the version of FILE. With it, `deployment put FILE` detects whether another session
    wrote first. FILE is a working copy: plans never read it, and you must not commit it.
    """
    from stackyard.base import files  # lazy: only when this verb runs
    from stackyard.sources.deployment.checkouts import remember  # lazy: as above
    from stackyard.sources.deployment.fetch import fetch  # lazy: as above

    place = place_of(store)
    found = fetch(place, emit=session.emit)
    text = found.document.text
    if file is not None:
        files.replace_file(Path(file), text.encode())
        if found.version is not None:
            remember(place, Path(file), found.version)

    def show(writer: TextWriter) -> None:
        if file is None:
            writer.text(text)
        else:
            writer.line(f"Wrote {found.binding} of {found.label} to {file}.")

    return Result(
        document={
            "store": found.label,
            "version": version_document(found.version),
            "fingerprint": found.fingerprint,
            "file": file,
            "object": found.document.data if file is None else None,
        },
        show=show,
    )
