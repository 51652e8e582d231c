"""`stackyard deployment validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.deployment.options import place_of, store_option
from stackyard.cli.commands.site import show_warnings
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["validate"]


@click.command("validate", cls=Command)
@click.argument("file", required=False)
@store_option
@pass_session
def validate(session: Session, /, file: str | None, store: str | None) -> Result:
    """Validate FILE, or the current object.

    This checks the shipped schema, your own deployment.schema.json if there is one, misspelt keys, names that
    do not exist, and IDs and addresses that are used twice or do not fit. It reports all problems at once,
    each with its place.
    """
    from stackyard.base import files  # lazy: only when this verb runs
    from stackyard.sources.deployment.fetch import fetch, rules_of  # lazy: as above
    from stackyard.sources.deployment.text import parse  # lazy: as above
    from stackyard.sources.deployment.validate import check  # lazy: as above

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

    def show(writer: TextWriter) -> None:
        show_warnings(writer, warnings)
        text = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        writer.line(f"{label} is valid: {text}.", style="green")

    return Result(
        document={
            "object": label,
            "environment": understood.scope.environment,
            "counts": counts,
            "warnings": [finding.document() for finding in warnings],
        },
        show=show,
    )
