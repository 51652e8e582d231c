"""`stackyard plan`: what would change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import (
    Chosen,
    allowances,
    permit_options,
    recreated,
    repair_options,
    target_options,
)
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.cli.views.changes import change_document, show_changes, show_verdict, verdict_document
from stackyard.engine.changes import Action
from stackyard.errors import ExitStatus
from stackyard.path.planning import Wishes, planned

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.path.planning import Made

__all__ = ["plan", "plan_document"]


@click.command("plan", cls=Command)
@target_options
@permit_options
@repair_options
@click.option("--out", metavar="FILE", help="Save the plan, encrypted, for `stackyard apply --plan FILE`.")
@click.option(
    "--detailed-exitcode", is_flag=True, help="End with 2 where there are changes that apply would make."
)
@pass_session
def plan(session: Session, /, **values: Any) -> Result:
    """Show what would change for TARGET (`env:dev`, or `dev`), and what the guard says to it.

    Guests and the state stay as they are. What the guard would refuse is shown with the option that would
    permit it, and the command ends with 3; `apply` stops there.
    """
    return session.run(_plan(session, values))


async def _plan(session: Session, values: dict[str, Any]) -> Result:
    wishes = Wishes(
        allowances=allowances(values),
        accept_renames=values["accept_renames"],
        adopt=values["adopt"],
        recreate=recreated(values),
    )
    out = Path(values["out"]) if values["out"] else None
    async with Chosen(session, values).run() as run, planned(run, wishes) as made:
        if out is not None:
            made.save(run, out)
        has_changes = not made.changes.is_empty
    status = ExitStatus.CHANGES if has_changes and values["detailed_exitcode"] else ExitStatus.DONE
    if made.verdict.refused:
        status = ExitStatus.REFUSED
    return Result(
        document={**plan_document(made), "plan": None if out is None else str(out)},
        show=lambda paper: _show(paper, made, out),
        status=status,
    )


def plan_document(made: Made) -> dict[str, Any]:
    """Return the JSON view of a plan."""
    return {
        "target": made.binding.target,
        "state": made.binding.state_name,
        "has_changes": not made.changes.is_empty,
        "changes": [
            change_document(change) for change in made.changes.planned if change.action is not Action.NOTHING
        ],
        "guard": verdict_document(made.verdict),
    }


def _show(paper: Paper, made: Made, out: Path | None) -> None:
    show_changes(paper, made.changes)
    show_verdict(paper, made.verdict)
    if out is not None:
        paper.line(f"Saved to {out}.")
