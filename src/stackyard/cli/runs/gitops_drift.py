"""The run of `stackyard gitops drift`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.gitops import open_context
from stackyard.gitops.drift import DriftState, find_drift, list_drift_targets, open_base

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.gitops.drift import DriftFound

__all__ = ["run_gitops_drift"]

_COLOURS = {DriftState.NONE: "green", DriftState.DRIFT: "yellow", DriftState.UNKNOWN: "red"}
_WORDS = {
    DriftState.NONE: "as the base branch says",
    DriftState.DRIFT: "differs",
    DriftState.UNKNOWN: "could not be planned",
}


async def run_gitops_drift(session: Session, values: dict[str, Any]) -> Result:
    """Compare targets with the base branch, one after another."""
    async with open_context(session, values) as context:
        targets = values["targets"] or await list_drift_targets(context)
        async with open_base(context) as checkout:
            found = [await find_drift(context, checkout, target) for target in targets]
        commit = checkout.commit
    document = {"commit": commit, "targets": [_row(one) for one in found]}
    return Result(
        document=document,
        show=lambda writer: _show(writer, found),
        status=_status(found, is_detailed=values["detailed_exitcode"]),
    )


def _row(one: DriftFound) -> dict[str, Any]:
    row: dict[str, Any] = {"target": one.target, "state": one.state.value, "issue": one.issue or None}
    return {**row, "error": dict(one.error)} if one.error else row


def _status(found: list[DriftFound], *, is_detailed: bool) -> ExitStatus:
    states = {one.state for one in found}
    if DriftState.UNKNOWN in states:
        return ExitStatus.FAILED
    return ExitStatus.CHANGES if is_detailed and DriftState.DRIFT in states else ExitStatus.DONE


def _show(writer: TextWriter, found: list[DriftFound]) -> None:
    if not found:
        writer.line("Nothing was applied from here yet.")
    for one in found:
        issue = f" (issue {one.issue})" if one.issue else ""
        why = f": {one.error.get('summary')}" if one.error else ""
        writer.line(f"{one.target}: {_WORDS[one.state]}{issue}{why}", style=_COLOURS[one.state])
