"""`stackyard plans show`: what a saved plan does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.plans.stored import open_store, plan_row, site_option
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["show"]


@click.command("show", cls=Command)
@click.argument("plan")
@site_option
def show(plan: str, site: str | None) -> Result:
    """Show the changes of a saved plan, with secrets masked.

    PLAN is an id, or the start of one.
    """
    from stackyard.path.saved_plans import find_plan, read_plan  # lazy: only when this verb runs

    with open_store(site) as opened:
        found = find_plan(opened.objects, plan)
        saved = read_plan(opened.objects, found, opened.keys())
    bound = saved.binding
    document = {
        **plan_row(found),
        **saved.shown,
        "made_for": {
            "state": bound.state or None,
            "stackyard": bound.code,
            "engine": bound.engine,
            "provider": bound.provider,
        },
    }
    return Result(document=document, show=lambda writer: _show(writer, document))


def _show(writer: TextWriter, document: Mapping[str, Any]) -> None:
    from stackyard.cli.views.changes import show_document  # lazy: only when this verb runs

    made_for = document["made_for"]
    writer.line(f"Plan {document['id']} for {document['target']}, saved {document['saved_at']}")
    writer.line(f"  for state {made_for['state'] or 'none yet'}, {made_for['engine']}")
    show_document(writer, document)
