"""`stackyard drift`: what is no longer as it was applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.path_options import Chosen, target_options
from stackyard.cli.result import Result
from stackyard.cli.session import Session, pass_session
from stackyard.cli.views.changes import change_document, show_changes
from stackyard.engine.changes import Changes
from stackyard.errors import ExitStatus
from stackyard.path.drifting import find_drift
from stackyard.path.planning import Wishes, planned

if TYPE_CHECKING:
    from stackyard.cli.views.paper import Paper
    from stackyard.path.drifting import Drift

__all__ = ["drift"]


@click.command("drift", cls=Command)
@target_options
@click.option("--detailed-exitcode", is_flag=True, help="End with 2 where something drifted.")
@pass_session
def drift(session: Session, /, **values: Any) -> Result:
    """Show what of TARGET is no longer as its input says, and which guests nobody manages.

    Nothing is changed; `stackyard apply` puts right what drifted.
    """
    return session.run(_drift(session, values))


async def _drift(session: Session, values: dict[str, Any]) -> Result:
    async with Chosen(session, values).run() as run, planned(run, Wishes(unchanged=True)) as made:
        found = find_drift(made)
    is_reported = found.is_there and values["detailed_exitcode"]
    return Result(
        document={
            "target": made.binding.target,
            "has_drift": found.is_there,
            "managed": [change_document(change) for change in found.managed],
            "ignored": [change_document(change) for change in found.ignored],
            "unmanaged": [
                {"vm_id": guest.vm_id, "name": guest.name, "node": guest.node, "type": guest.kind}
                for guest in found.unmanaged
            ],
            "not_applied": [finding.diagnostic().document() for finding in found.not_applied],
        },
        show=lambda paper: _show(paper, found),
        status=ExitStatus.CHANGES if is_reported else ExitStatus.DONE,
    )


def _show(paper: Paper, found: Drift) -> None:
    show_changes(paper, Changes(planned=found.managed))
    if found.ignored:
        paper.line(f"Changed by itself, and ignored: {len(found.ignored)} resources.")
    for finding in found.not_applied:
        paper.line(f"{finding.kind.summary}: {finding.detail}", style="yellow")
        paper.line(f"    {finding.kind.remedy}")
    if found.unmanaged:
        paper.line("Guests that are not in this state:")
        rows = [(guest.name or "-", str(guest.vm_id), guest.kind, guest.node) for guest in found.unmanaged]
        paper.table(("guest", "vm id", "type", "node"), rows)
