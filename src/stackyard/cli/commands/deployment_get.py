"""`stackyard deployment get`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.deployments.options import place_of, store_option
from stackyard.cli.deployments.view import version_document
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper

__all__ = ["get"]


@click.command("get", cls=Command)
@click.argument("file", required=False)
@store_option
@pass_session
def get(session: Session, /, file: str | None, store: str | None) -> Result:
    """Fetch the object as it is now, and write it to FILE or print it.

    Which version FILE has is remembered, so that `deployment put FILE` can tell whether somebody else was
    faster. FILE is a copy to work on: plans never read it, and it must not be committed.
    """
    from stackyard import files  # lazy: only when this verb runs
    from stackyard.deployment.checkouts import remember  # lazy: as above
    from stackyard.deployment.fetch import fetch  # lazy: as above

    place = place_of(store)
    found = fetch(place, emit=session.emit)
    text = found.document.text
    if file is not None:
        files.replace_file(Path(file), text.encode())
        if found.version is not None:
            remember(place, Path(file), found.version)

    def show(paper: Paper) -> None:
        if file is None:
            paper.text(text)
        else:
            paper.line(f"Wrote {found.binding} of {found.label} to {file}.")

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
