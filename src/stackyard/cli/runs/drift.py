"""The run of `stackyard drift`, and what a human and a program see of drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.target import ChosenTarget
from stackyard.cli.views.changes import change_document
from stackyard.cli.views.planned_changes import show_changes
from stackyard.engine.changes import Changes
from stackyard.path.drift import find_drift
from stackyard.path.plan import make_plan
from stackyard.path.plan_request import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.drift import Drift

__all__ = ["run_drift"]


async def run_drift(session: Session, values: dict[str, Any]) -> Result:
    """Find what of the target that the options name has drifted."""
    async with (
        ChosenTarget(session, values).run("drift") as run,
        make_plan(run, PlanRequest(unchanged=True)) as made,
    ):
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
        show=lambda writer: _show(writer, found, run.workdir.redactor),
        status=ExitStatus.CHANGES if is_reported else ExitStatus.DONE,
    )


def _show(writer: TextWriter, found: Drift, redact: Callable[[str], str]) -> None:
    show_changes(writer, Changes(planned=found.managed), redact)
    if found.ignored:
        writer.line(f"Changed by itself, and ignored: {len(found.ignored)} resources.")
    for finding in found.not_applied:
        writer.line(f"{finding.kind.summary}: {finding.detail}", style="yellow")
        writer.line(f"    {finding.kind.remedy}")
    if found.unmanaged:
        writer.line("Guests that no state manages:")
        rows = [(guest.name or "-", str(guest.vm_id), guest.kind, guest.node) for guest in found.unmanaged]
        writer.table(("guest", "vm id", "type", "node"), rows)
