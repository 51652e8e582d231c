"""`stackyard apply`: make it so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.plan import plan_document
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
from stackyard.cli.views.changes import show_changes, show_verdict
from stackyard.diagnostics import describe
from stackyard.errors import ExitStatus, StackyardError, UsageError
from stackyard.path.applying import Outcome, apply_plan
from stackyard.path.planfile import PlanFile
from stackyard.path.planning import Made, Wishes, planned, reopened
from stackyard.render.references import address_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from stackyard.cli.views.paper import Paper
    from stackyard.inventory.publishing import Published
    from stackyard.path.run import Run

__all__ = ["Shelved", "apply", "nothing_result", "outcome_result"]


@click.command("apply", cls=Command)
@target_options
@permit_options
@repair_options
@click.option("--plan", "plan_file", metavar="FILE", help="Apply this plan of `stackyard plan --out`.")
@click.option("--no-verify", is_flag=True, help="Do not wait until the guests are up.")
@pass_session
def apply(session: Session, /, **values: Any) -> Result:
    """Plan TARGET, ask the guard, apply exactly that plan, and prove that the guests are up.

    Nothing is changed when the guard refuses. A saved plan is applied only while the input, the state, the
    tools and stackyard itself are what they were when it was made.
    """
    return session.run(_apply(session, values))


async def _apply(session: Session, values: dict[str, Any]) -> Result:
    plan_file = values["plan_file"]
    if plan_file and (values["accept_renames"] or values["adopt"] or values["recreate"]):
        raise UsageError(
            "--accept-renames, --adopt and --recreate become part of a plan when it is made: "
            "repeat `stackyard plan --out` with them, and apply that."
        )
    wishes = Wishes(
        allowances=allowances(values),
        accept_renames=values["accept_renames"],
        adopt=values["adopt"],
        recreate=recreated(values),
    )
    async with Chosen(session, values).run() as run, _made(run, wishes, plan_file) as made:
        made.verdict.raise_refusal(str(run.resolved.target))
        if made.is_nothing:
            return nothing_result(made)
        outcome = await apply_plan(run, made, is_verified=not values["no_verify"])
        shelved = None if values["no_verify"] or outcome.down else _shelved(run, outcome)
    return outcome_result(made, outcome, shelved)


def _shelved(run: Run, outcome: Outcome) -> Shelved:
    from stackyard.path.publishing import publish  # lazy: its schema, only after an apply

    seen = {
        address_of(guest): up.addresses
        for guest in run.resolved.desired.guests
        for up in outcome.up
        if up.key == guest.key
    }
    try:
        return Shelved(published=publish(run, seen=seen))
    except StackyardError as err:
        # What was applied stays applied; that nobody is told of it is a failure of its own.
        return Shelved(error=err)


def _made(run: Run, wishes: Wishes, plan_file: str | None) -> AbstractAsyncContextManager[Made]:
    if plan_file is None:
        return planned(run, wishes)
    return reopened(run, PlanFile.load(Path(plan_file), run.key), wishes)


def nothing_result(made: Made) -> Result:
    """Return what is shown where there is nothing to apply."""
    return Result(
        document={**plan_document(made), "applied": None, "guests": []},
        show=lambda paper: show_changes(paper, made.changes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelved:
    """What became of the inventory after an apply."""

    published: Published | None = None
    error: StackyardError | None = None

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        where = None if self.published is None else self.published.where
        return {"where": where, "error": None if self.error is None else describe(self.error)}


def outcome_result(made: Made, outcome: Outcome, shelved: Shelved | None = None) -> Result:
    """Return what a human and a program see of an apply."""
    applied = outcome.applied
    is_well = not outcome.down and (shelved is None or shelved.error is None)
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
            "inventory": None if shelved is None else shelved.document(),
        },
        show=lambda paper: _show(paper, made, outcome, shelved),
        status=ExitStatus.DONE if is_well else ExitStatus.FAILED,
    )


def _show(paper: Paper, made: Made, outcome: Outcome, shelved: Shelved | None) -> None:
    show_verdict(paper, made.verdict)
    applied = outcome.applied
    paper.line(
        f"Applied: {applied.add} created, {applied.change} changed, {applied.remove} destroyed.",
        style="green",
    )
    if outcome.up:
        rows = [
            (up.name, str(up.vm_id), up.node, ", ".join(up.addresses) or "-", f"{up.took_s:.1f} s")
            for up in sorted(outcome.up, key=lambda up: up.name)
        ]
        paper.table(("guest", "vm id", "node", "addresses", "up after"), rows)
    for error in outcome.down:
        paper.line(f"{error.detail} {error.remedy}", style="red")
    if shelved is not None and shelved.published is not None:
        paper.line(f"Inventory: {shelved.published.where}")
    if shelved is not None and shelved.error is not None:
        paper.line(f"{shelved.error.summary}: {shelved.error.detail}", style="red")
        for finding in shelved.error.diagnostics:
            paper.line(f"  {finding.detail} {finding.kind.remedy}", style="red")
