"""`stackyard deployment validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.site import show_warnings
from stackyard.cli.deployments.options import place_of, store_option
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper

__all__ = ["validate"]


@click.command("validate", cls=Command)
@click.argument("file", required=False)
@store_option
@pass_session
def validate(session: Session, /, file: str | None, store: str | None) -> Result:
    """Hold FILE, or the object as it is now, against everything that it must meet.

    The shipped schema, your own deployment.schema.json where there is one, misspelt keys, names that do not
    exist, ids and addresses that are used twice or do not fit: all of it at once, each with its place.
    """
    from stackyard import files  # lazy: only when this verb runs
    from stackyard.deployment.fetch import fetch, rules_of  # lazy: as above
    from stackyard.deployment.text import parse  # lazy: as above
    from stackyard.deployment.validate import check  # lazy: as above

    place = place_of(store)
    if file is not None:
        document, label = parse(files.read_text(Path(file)), file), file
    else:
        found = fetch(place, emit=session.emit)
        document, label = found.document, found.label
    checked = check(document, rules_of(place))
    understood = checked.require()
    warnings = checked.found.warnings
    counts = {
        "containers": sum(guest.is_container for guest in understood.guests),
        "vms": sum(not guest.is_container for guest in understood.guests),
        "generated": sum(guest.is_generated for guest in understood.guests),
    }

    def show(paper: Paper) -> None:
        show_warnings(paper, warnings)
        text = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        paper.line(f"{label} is valid: {text}.", style="green")

    return Result(
        document={
            "object": label,
            "environment": understood.scope.environment,
            "counts": counts,
            "warnings": [finding.document() for finding in warnings],
        },
        show=show,
    )
