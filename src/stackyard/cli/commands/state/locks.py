"""`stackyard state locks`: who holds which lock, since when, and who waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.words import PERIOD, instant, period
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["locks"]


@click.command("locks", cls=Command)
@click.argument("prefix", required=False, default="", shell_complete=complete_states)
@click.option(
    "--stale-after",
    type=PERIOD,
    default="1h",
    show_default=True,
    metavar="AGE",
    help="Show a lock as stale if its holder has not written for this long.",
)
@store_options
def locks(prefix: str, stale_after: float, choice: StoreChoice) -> Result:
    """Show who holds which lock, since when, for what, and who waits for it.

    A stale lock is only a hint: an engine sends nothing between two writes, and a lock never expires by
    itself. The lock of a run that stackyard started is different: its process is known, and a dead run is
    shown as dead. The next run takes over such a lock.

    `stackyard state unlock ID --reason TEXT` removes any other lock.
    """
    from stackyard.state import Policy  # lazy: only when this verb runs
    from stackyard.state.runs import RunWatch  # lazy: as above

    now = time.time()
    with open_service(choice, policy=Policy(stale_after_s=stale_after)) as service:
        watch = RunWatch(service.objects)
        found = [
            _document(report, watch.explain_death(_lease(report)) if _lease(report) else None, now)
            for report in service.locks.report(prefix)
        ]
    return Result(document={"locks": found}, show=lambda writer: _show(writer, found))


def _lease(report: Any) -> str:
    return "" if report.held is None else report.held.lease or ""


def _document(report: Any, proof: str | None, now: float) -> dict[str, Any]:
    held, freeze = report.held, report.freeze
    return {
        "name": report.name,
        "id": None if held is None else held.info.id,
        "who": None if held is None else held.info.who,
        "by": None if held is None else held.principal,
        "address": None if held is None else held.address,
        "operation": None if held is None else held.info.operation,
        "engine_version": None if held is None else held.info.version,
        "since": instant(None if held is None else held.since_at),
        "age_s": round(report.age_s, 3),
        "last_write_at": instant(None if held is None else held.last_write_at),
        "last_write_s": None
        if held is None or held.last_write_at is None
        else round(max(0.0, now - held.last_write_at), 3),
        "is_stale": report.is_stale,
        "has_lease": held is not None and held.lease is not None,
        "dead": proof,
        "frozen": None if freeze is None else {"by": freeze.by, "reason": freeze.reason},
        "waiting": [
            {
                "place": place,
                "who": waiter.info.who,
                "id": waiter.info.id,
                "operation": waiter.info.operation,
                "waits_s": round(max(0.0, now - waiter.since_at), 3),
            }
            for place, waiter in enumerate(report.waiting, start=1)
        ],
    }


def _show(writer: TextWriter, found: list[dict[str, Any]]) -> None:
    if not found:
        writer.line("Nothing is locked.")
        return
    rows = []
    for lock in found:
        written = "never" if lock["last_write_s"] is None else f"{period(lock['last_write_s'])} ago"
        what = (lock["operation"] or "").removeprefix("OperationType").lower()
        who = lock["who"] or lock["by"] or "-"
        rows.append(
            (
                lock["name"],
                lock["id"] or "frozen",
                who if lock["id"] else lock["frozen"]["by"],
                what or "-",
                period(lock["age_s"]),
                written if lock["id"] else "-",
                str(len(lock["waiting"]) or "-"),
            )
        )
    writer.table(("state", "lock", "holder", "for", "age", "last write", "waiting"), rows)
    for lock in found:
        _show_remarks(writer, lock)


def _show_remarks(writer: TextWriter, lock: dict[str, Any]) -> None:
    name = lock["name"]
    if lock["frozen"]:
        writer.line(f"{name} is frozen by {lock['frozen']['by']}: {lock['frozen']['reason']}", style="yellow")
    if lock["dead"]:
        writer.line(f"{name}: {lock['dead']} The next run takes the lock over.", style="yellow")
    elif lock["is_stale"]:
        writer.line(
            f"{name}: the holder has not written for long; look whether it still runs.", style="yellow"
        )
    for waiter in lock["waiting"]:
        writer.line(
            f"{name}: {waiter['who'] or waiter['id']} is number {waiter['place']} in the queue, for"
            f" {period(waiter['waits_s'])}."
        )
