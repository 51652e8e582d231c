"""`stackyard state unlock`: take a lock away, for a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, current_actor, open_service, store_options
from stackyard.cli.commands.state.words import period
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.state import LockReport, StateService

__all__ = ["unlock"]


@click.command("unlock", cls=Command)
@click.argument("lock_id", metavar="ID")
@click.option("--reason", required=True, metavar="TEXT", help="The reason, for the audit log and the holder.")
@store_options
def unlock(lock_id: str, reason: str, choice: StoreChoice) -> Result:
    """Remove the lock of a run that has died.

    `stackyard state locks` shows the ID, and the engine prints it when it finds a state locked. The former
    holder of the lock can no longer write: if it is still alive, its writes are refused and kept.
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
        show=lambda writer: writer.line(text),
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
