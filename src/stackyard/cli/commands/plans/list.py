"""`stackyard plans list`: the saved plans of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import StackyardError
from stackyard.cli.command import Command
from stackyard.cli.commands.plans.stored import OpenedStore, open_store, plan_row, site_option
from stackyard.cli.commands.state.words import local_time
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.path.planfile import PlanKey
    from stackyard.path.saved_plans import StoredPlan

__all__ = ["list_saved"]


@click.command("list", cls=Command)
@site_option
def list_saved(site: str | None) -> Result:
    """List the saved plans, and show which of them can still be applied.

    `outdated` means that the state has changed since the plan was saved. `locked` means that this machine
    does not have the key of the plan. The input and the versions of programs are compared by `apply`.
    """
    from stackyard.path.saved_plans import list_plans  # lazy: only when this verb runs

    with open_store(site) as opened:
        saved = list(list_plans(opened.objects))
        keys, missing = _keys(opened) if saved else ((), None)
        rows = [(one, _describe(opened, one, keys)) for one in saved]
    document = {
        "plans": [{**plan_row(one), **facts} for one, facts in rows],
        "key_missing": missing,
    }
    return Result(document=document, show=lambda writer: _show(writer, rows, missing))


def _keys(opened: OpenedStore) -> tuple[tuple[PlanKey, ...], str | None]:
    try:
        return opened.keys(), None
    except StackyardError as err:
        # What is there can be listed without the key.
        return (), err.detail


def _describe(opened: OpenedStore, plan: StoredPlan, keys: tuple[PlanKey, ...]) -> dict[str, Any]:
    from stackyard.path.planfile import PlanFileError  # lazy: only when this verb runs
    from stackyard.path.run_state import state_version  # lazy: as above
    from stackyard.path.saved_plans import PlanUnknownError, read_plan  # lazy: as above
    from stackyard.state import StateService  # lazy: as above

    try:
        saved = read_plan(opened.objects, plan, keys)
    except (PlanFileError, PlanUnknownError):
        return {"target": None, "status": "locked"}
    is_current = state_version(StateService(opened.objects), plan.state) == saved.binding.state
    return {"target": saved.binding.target, "status": "current" if is_current else "outdated"}


def _show(writer: TextWriter, rows: list[tuple[StoredPlan, dict[str, Any]]], missing: str | None) -> None:
    if not rows:
        writer.line("No plans are saved in the store.")
        return
    table = [
        (one.id, facts["target"] or one.state, local_time(one.saved_at), facts["status"])
        for one, facts in rows
    ]
    writer.table(("plan", "target", "saved", "status"), table)
    if missing is not None:
        writer.line(f"Plans that are `locked` cannot be decrypted here: {missing}", style="yellow")
