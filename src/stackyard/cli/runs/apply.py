"""The run of `stackyard apply`, and what a human and a program see of an apply."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, StackyardError, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.plan import plan_result
from stackyard.cli.runs.plan_options import make_plan_request
from stackyard.cli.runs.plan_question import require_yes
from stackyard.cli.runs.target import ChosenTarget
from stackyard.cli.views.changes import show_verdict
from stackyard.cli.views.handovers import show_handovers
from stackyard.cli.views.plan_document import plan_document
from stackyard.cli.views.planned_changes import show_changes
from stackyard.path.apply import ApplyOutcome, apply_plan, verify_guests
from stackyard.path.credentials.perform import require_login
from stackyard.path.plan import Plan, load_plan, make_plan
from stackyard.path.saved_plans import open_plan
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.inventory.targets import Published
    from stackyard.path.credentials.perform import LoginSession
    from stackyard.path.plan_request import PlanRequest
    from stackyard.path.run import Run

__all__ = ["PublishedInventory", "nothing_result", "outcome_result", "run_apply"]


async def run_apply(session: Session, values: dict[str, Any], login: LoginSession | None = None) -> Result:
    """Apply the plan of the target that the options name, or the one that was saved.

    Args:
        session: The command.
        values: Its options.
        login: Who sets passwords.
    """
    plan_file = values["plan_file"]
    if plan_file and (values["accept_renames"] or values["adopt"] or values["recreate"]):
        raise UsageError(
            "--accept-renames, --adopt and --recreate become part of a plan when it is created: "
            "repeat `stackyard plan --out` with them, and apply that."
        )
    plan_request = replace(make_plan_request(values), has_login=login is not None)
    chosen = ChosenTarget(session, values)
    async with (
        chosen.run("plan" if values["dry_run"] else "apply") as opened,
        open_saved_or_make(opened, plan_request, plan_file) as (
            run,
            made,
        ),
    ):
        if values["dry_run"]:
            return plan_result(run, made)
        made.verdict.raise_refusal(str(run.resolved.target))
        if made.is_nothing:
            return await _complete_inventory(chosen, run, made, is_verified=not values["no_verify"])
        require_login(made.credentials, login)
        if plan_file is None and not values["yes"]:
            await require_yes(session, run, made, f"Apply this plan to {run.resolved.target}?")
        outcome = await apply_plan(run, made, is_verified=not values["no_verify"], login=login)
        inventory = None if values["no_verify"] or outcome.down else _publish(run, outcome)
        chosen.note_failures(_list_failures(outcome, inventory))
    return outcome_result(made, outcome, inventory)


async def _complete_inventory(chosen: ChosenTarget, run: Run, made: Plan, *, is_verified: bool) -> Result:
    """Publish the inventory where there is nothing to apply, unless it is current.

    A run before may have been interrupted between its apply and the end of its guests' boot.
    """
    from stackyard.path.publish import is_current  # lazy: its schema, only for an apply

    has_guests = any(run.resolved.desired.guests)
    if not is_verified or not has_guests or await asyncio.to_thread(is_current, run):
        return nothing_result(made)
    outcome = await verify_guests(run, made)
    inventory = None if outcome.down else _publish(run, outcome)
    chosen.note_failures(_list_failures(outcome, inventory))
    return _verified_result(made, outcome, inventory)


def _publish(run: Run, outcome: ApplyOutcome) -> PublishedInventory:
    from stackyard.path.publish import publish  # lazy: its schema, only after an apply

    seen = {
        address_of(guest): up.addresses
        for guest in run.resolved.desired.guests
        for up in outcome.up
        if up.key == guest.key
    }
    try:
        return PublishedInventory(published=publish(run, seen=seen))
    except StackyardError as err:
        # What was applied stays applied; a report that fails is a failure of its own.
        return PublishedInventory(error=err)


@contextlib.asynccontextmanager
async def open_saved_or_make(
    run: Run, plan_request: PlanRequest, plan_file: str | None
) -> AsyncIterator[tuple[Run, Plan]]:
    """Give the plan to apply, and the run with the key that opens it."""
    if plan_file is None:
        async with make_plan(run, plan_request) as made:
            yield run, made
        return
    saved = await asyncio.to_thread(open_plan, run, plan_file)
    fitting = run if saved.key is None else run.with_key(saved.key)
    async with load_plan(fitting, saved, plan_request) as made:
        yield fitting, made


def nothing_result(made: Plan) -> Result:
    """Return what is shown where there is nothing to apply."""

    def show(writer: TextWriter) -> None:
        show_changes(writer, made.shown, str)
        show_verdict(writer, replace(made.verdict, permitted=()))

    return Result(document={**plan_document(made), "applied": None, "guests": []}, show=show)


def _verified_result(made: Plan, outcome: ApplyOutcome, inventory: PublishedInventory | None) -> Result:
    """Return what is shown where there was nothing to apply, and guests were waited for."""

    def show(writer: TextWriter) -> None:
        show_changes(writer, made.shown, str)
        _show_guests(writer, outcome, inventory)

    return Result(
        document={**plan_document(made), "applied": None, **_guests_document(outcome, inventory)},
        show=show,
        status=_status(outcome, inventory),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedInventory:
    """What became of the inventory after an apply."""

    published: Published | None = None
    error: StackyardError | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        where = None if self.published is None else self.published.where
        return {"where": where, "error": None if self.error is None else describe(self.error)}


def outcome_result(made: Plan, outcome: ApplyOutcome, inventory: PublishedInventory | None = None) -> Result:
    """Return what a human and a program see of an apply."""
    applied = outcome.applied
    return Result(
        document={
            **plan_document(made),
            "applied": {"add": applied.add, "change": applied.change, "remove": applied.remove},
            **_guests_document(outcome, inventory),
        },
        show=lambda writer: _show(writer, made, outcome, inventory),
        status=_status(outcome, inventory),
    )


def _list_failures(outcome: ApplyOutcome, inventory: PublishedInventory | None) -> list[StackyardError]:
    """Return what went wrong after the changes were applied."""
    error = None if inventory is None else inventory.error
    return [*outcome.down, *([] if error is None else [error])]


def _status(outcome: ApplyOutcome, inventory: PublishedInventory | None) -> ExitStatus:
    return ExitStatus.FAILED if _list_failures(outcome, inventory) else ExitStatus.DONE


def _guests_document(outcome: ApplyOutcome, inventory: PublishedInventory | None) -> dict[str, Any]:
    return {
        "guests": [
            {"key": up.key, "name": up.name, "vm_id": up.vm_id, "node": up.node, "addresses": up.addresses}
            for up in outcome.up
        ],
        "down": [describe(error) for error in outcome.down],
        "inventory": None if inventory is None else inventory.document(),
    }


def _show(
    writer: TextWriter, made: Plan, outcome: ApplyOutcome, inventory: PublishedInventory | None
) -> None:
    show_handovers(writer, made.handovers)
    show_verdict(writer, made.verdict)
    applied = outcome.applied
    writer.line(
        f"Applied: {applied.add} created, {applied.change} changed, {applied.remove} destroyed.",
        style="green",
    )
    _show_guests(writer, outcome, inventory)


def _show_guests(writer: TextWriter, outcome: ApplyOutcome, inventory: PublishedInventory | None) -> None:
    if outcome.up:
        rows = [
            (up.name, str(up.vm_id), up.node, ", ".join(up.addresses) or "-", f"{up.took_s:.1f} s")
            for up in sorted(outcome.up, key=lambda up: up.name)
        ]
        writer.table(("guest", "vm id", "node", "addresses", "up after"), rows)
    for error in outcome.down:
        writer.line(f"{error.detail} {error.remedy}", style="red")
    if inventory is not None and inventory.published is not None:
        writer.line(f"Inventory: {inventory.published.where}")
    if inventory is not None and inventory.error is not None:
        writer.line(f"{inventory.error.summary}: {inventory.error.detail}", style="red")
        for finding in inventory.error.diagnostics:
            writer.line(f"  {finding.detail} {finding.kind.remedy}", style="red")
