"""The run of `stackyard apply`, and what a human and a program see of an apply."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import describe
from stackyard.base.errors import ExitStatus, StackyardError, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.plan import plan_document
from stackyard.cli.runs.target import ChosenTarget, allowances, list_recreated_guests
from stackyard.cli.views.changes import show_changes, show_verdict
from stackyard.path.apply import ApplyOutcome, apply_plan
from stackyard.path.plan import Plan, PlanRequest, load_plan, make_plan
from stackyard.path.saved_plans import open_plan
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.inventory.targets import Published
    from stackyard.path.run import Run

__all__ = ["PublishedInventory", "nothing_result", "outcome_result", "run_apply"]


async def run_apply(session: Session, values: dict[str, Any]) -> Result:
    """Apply the plan of the target that the options name, or the one that was saved."""
    plan_file = values["plan_file"]
    if plan_file and (values["accept_renames"] or values["adopt"] or values["recreate"]):
        raise UsageError(
            "--accept-renames, --adopt and --recreate become part of a plan when it is created: "
            "repeat `stackyard plan --out` with them, and apply that."
        )
    plan_request = PlanRequest(
        allowances=allowances(values),
        accept_renames=values["accept_renames"],
        adopt=values["adopt"],
        recreate=list_recreated_guests(values),
    )
    async with (
        ChosenTarget(session, values).run("apply") as opened,
        _open_plan(opened, plan_request, plan_file) as (
            run,
            made,
        ),
    ):
        made.verdict.raise_refusal(str(run.resolved.target))
        if made.is_nothing:
            return nothing_result(made)
        outcome = await apply_plan(run, made, is_verified=not values["no_verify"])
        inventory = None if values["no_verify"] or outcome.down else _publish(run, outcome)
    return outcome_result(made, outcome, inventory)


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
async def _open_plan(
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
    return Result(
        document={**plan_document(made), "applied": None, "guests": []},
        show=lambda writer: show_changes(writer, made.changes),
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
    is_well = not outcome.down and (inventory is None or inventory.error is None)
    return Result(
        document={
            **plan_document(made),
            "applied": {"add": applied.add, "change": applied.change, "remove": applied.remove},
            "guests": [
                {
                    "key": up.key,
                    "name": up.name,
                    "vm_id": up.vm_id,
                    "node": up.node,
                    "addresses": up.addresses,
                }
                for up in outcome.up
            ],
            "down": [describe(error) for error in outcome.down],
            "inventory": None if inventory is None else inventory.document(),
        },
        show=lambda writer: _show(writer, made, outcome, inventory),
        status=ExitStatus.DONE if is_well else ExitStatus.FAILED,
    )


def _show(
    writer: TextWriter, made: Plan, outcome: ApplyOutcome, inventory: PublishedInventory | None
) -> None:
    show_verdict(writer, made.verdict)
    applied = outcome.applied
    writer.line(
        f"Applied: {applied.add} created, {applied.change} changed, {applied.remove} destroyed.",
        style="green",
    )
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
