"""`stackyard state audit`: the audit logs, and the proof that they are whole."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import click

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.command import Command
from stackyard.cli.commands.state.store import StoreChoice, open_service, store_options
from stackyard.cli.commands.state.words import instant, local_time
from stackyard.cli.completions import complete_states
from stackyard.cli.result import Result

if TYPE_CHECKING:
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.state import AuditEntry, ChainVerdict, StateService

__all__ = ["audit"]


@click.command("audit", cls=Command)
@click.argument("name", required=False, shell_complete=complete_states)
@click.option(
    "--service", "is_service", is_flag=True, help="Show the log of the service itself: principals, logins."
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    metavar="N",
    help="Show the newest N entries.",
)
@click.option(
    "--expect",
    metavar="SEQ:HASH",
    help="Verify that the entry with this number still has this hash, as an earlier audit printed it.",
)
@store_options
def audit(name: str | None, is_service: bool, limit: int, expect: str | None, choice: StoreChoice) -> Result:
    """Verify the audit logs, and show the newest entries of one log.

    Each entry includes the hash of the entry before it. Changing, removing or inserting an entry breaks the
    chain at that point. Without NAME, the command verifies the logs of all states and of the service. Anyone
    who can write to the store can rewrite the whole chain: record the last SEQ:HASH elsewhere from time to
    time, and pass it to --expect.

    Exit status 1: a log was tampered with. The output names the entry.
    """
    if name is not None and is_service:
        raise UsageError("NAME and --service name two logs; give one.")
    if expect is not None and name is None and not is_service:
        raise UsageError("--expect belongs to one log: give NAME or --service.")
    with open_service(choice) as service:
        if name is None and not is_service:
            verdicts = [service.audit.verify(one) for one in ("", *service.names())]
            return _result(verdicts, [])
        verdict = service.audit.verify(name or "")
        entries = _newest(service, verdict, limit)
        problem = "" if expect is None else _compare_with_expected(service, verdict, expect)
    return _result([verdict], entries, problem)


def _newest(service: StateService, verdict: ChainVerdict, limit: int) -> list[AuditEntry]:
    """Return the newest entries before the fault, if there is one."""
    entries = service.audit.entries(verdict.name, after=max(0, verdict.entries - limit))
    kept: deque[AuditEntry] = deque(maxlen=limit)
    for entry in entries:
        if entry.seq > verdict.entries:
            break
        kept.append(entry)
    return list(kept)


def _compare_with_expected(service: StateService, verdict: ChainVerdict, expect: str) -> str:
    number, _, wanted = expect.partition(":")
    if not number.isdecimal() or not wanted:
        raise UsageError(f"--expect {expect!r} is not SEQ:HASH, as `stackyard state audit` prints it.")
    seq = int(number)
    if seq > verdict.entries:
        return f"Entry {seq} is missing: the log ends with entry {verdict.entries}."
    entry = next(service.audit.entries(verdict.name, after=seq - 1))
    return "" if entry.hash == wanted else f"Entry {seq} is not the one that was expected: it was replaced."


def _result(verdicts: list[ChainVerdict], entries: list[AuditEntry], unexpected: str = "") -> Result:
    logs = [_verdict_document(verdict, unexpected) for verdict in verdicts]
    is_whole = all(log["is_whole"] for log in logs)
    document = {"is_whole": is_whole, "logs": logs, "entries": [_entry_document(entry) for entry in entries]}
    return Result(
        document=document,
        show=lambda writer: _show(writer, logs, entries),
        status=ExitStatus.DONE if is_whole else ExitStatus.FAILED,
    )


def _verdict_document(verdict: ChainVerdict, unexpected: str) -> dict[str, Any]:
    problem = verdict.problem or unexpected
    return {
        "name": verdict.name or None,
        "is_whole": not problem,
        "entries": verdict.entries,
        "last": f"{verdict.entries}:{verdict.last_hash}" if verdict.entries else None,
        "broken_at": verdict.entries + 1 if verdict.problem else None,
        "problem": problem or None,
    }


def _entry_document(entry: AuditEntry) -> dict[str, Any]:
    return {
        "seq": entry.seq,
        "at": instant(entry.at),
        "action": entry.action.value,
        "by": entry.principal,
        "address": entry.address,
        "lock_id": entry.lock_id or None,
        "epoch": entry.epoch or None,
        "serial": entry.serial,
        "version": entry.version,
        "size": entry.size,
        "detail": entry.detail or None,
        "hash": entry.hash,
    }


def _show(writer: TextWriter, logs: list[dict[str, Any]], entries: list[AuditEntry]) -> None:
    if entries:
        rows = [
            (str(one.seq), local_time(one.at), one.action.value, one.principal, _facts(one))
            for one in entries
        ]
        writer.table(("entry", "at", "what", "by", "facts"), rows)
    for log in logs:
        called = log["name"] or "the service itself"
        if log["is_whole"]:
            writer.line(f"{called}: whole, {log['entries']} entries, {log['last'] or 'nothing yet'}")
        else:
            writer.line(f"{called}: TAMPERED WITH. {log['problem']}", style="red")


def _facts(entry: AuditEntry) -> str:
    facts = []
    if entry.version is not None:
        facts.append(f"version {entry.version}")
    if entry.serial is not None:
        facts.append(f"serial {entry.serial}")
    if entry.lock_id:
        facts.append(f"lock {entry.lock_id}")
    return ", ".join([*facts, *([entry.detail] if entry.detail else [])]) or "-"
