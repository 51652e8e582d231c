"""`stackyard state unlock`: take a lock away, for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.result import Result
from stackyard.cli.states.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.states.words import period

if TYPE_CHECKING:
    from stackyard.state import LockReport, StateService

__all__ = ["unlock"]


@click.command("unlock", cls=Command)
@click.argument("lock_id", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="Why; it is audited, and its holder is told.")
@store_options
def unlock(lock_id: str, reason: str, choice: StoreChoice) -> Result:
    """Take a lock away from a run that is gone.

    ID is what `stackyard state locks` shows, and what the engine prints when it finds a state locked. Whoever
    held the lock can no longer write: should it be alive after all, its writes are refused and kept.
    """
    actor = current_actor()
    with open_service(choice) as service:
        report = _find(service, lock_id)
        service.locks.break_lock(report.name, lock_id, actor, reason=reason)
    held = report.held
    who = "" if held is None else held.info.who or held.principal
    text = f"{report.name} is unlocked; {who or 'somebody'} had held it for {period(report.age_s)}."
    return Result(
        document={"name": report.name, "id": lock_id, "who": who, "age_s": round(report.age_s, 3)},
        show=lambda paper: paper.line(text),
    )


def _find(service: StateService, lock_id: str) -> LockReport:
    from stackyard.state import NotHolderError  # lazy: only when this verb runs

    reports = [report for report in service.locks.report() if report.held is not None]
    for report in reports:
        if report.held is not None and report.held.info.id == lock_id:
            return report
    held = [f"{report.held.info.id} ({report.name})" for report in reports if report.held is not None]
    known = f"held are {', '.join(held)}" if held else "nothing is locked"
    raise NotHolderError(
        f"No state is locked by {lock_id}; {known}.",
        remedy="Look at `stackyard state locks`; the lock may have been released in the meantime.",
    )
