"""A plan made by hand, and what the guard says of it on a lab."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from stackyard import lab
from stackyard.clients import proxmox
from stackyard.desired import Desired
from stackyard.engine.changes import Action, Change, Changes, Difference
from stackyard.guard import Finding, Owners
from stackyard.guard.checks import find_refusals, list_follow_ups, list_reads
from stackyard.guard.facts import Operator
from stackyard.guard.implied import derive_implied_calls
from stackyard.path.guard_facts import caller_of, read_facts
from stackyard.path.survey import survey

__all__ = ["created", "judge", "removed", "updated"]


def _change(kind: str, action: Action, before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    return Change(
        address=f"proxmox_{kind}.one",
        kind=f"proxmox_{kind}",
        name="one",
        action=action,
        before=before,
        after=after,
        differences=tuple(_differences(before, after)),
    )


def _differences(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[Difference]:
    if before is not None and after is not None:
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield Difference(path=(name,), before=before.get(name), after=after.get(name))


def removed(kind: str, **values: Any) -> Change:
    """Return the end of a resource."""
    return _change(kind, Action.DELETE, values, None)


def created(kind: str, **values: Any) -> Change:
    """Return a new resource."""
    return _change(kind, Action.CREATE, None, values)


def updated(kind: str, before: dict[str, Any], **changes: Any) -> Change:
    """Return a resource that changes in place."""
    return _change(kind, Action.UPDATE, before, {**before, **changes})


async def judge(
    running: lab.Running,
    *changes: Change,
    token: str | None = None,
    owners: Owners | None = None,
    operator: Operator | None = None,
    beside: tuple[Change, ...] = (),
) -> list[Finding]:
    """Return what the guard finds, with what it reads of a lab."""
    connection = proxmox.Connection(
        endpoint=running.url,
        credentials=proxmox.Token(text=token or running.api_token),
        trust=proxmox.Trust(fingerprint=running.fingerprint),
    )
    implied = derive_implied_calls(Desired(), Changes(planned=changes))
    implied = replace(implied, beside=Changes(planned=beside))
    caller = caller_of(connection)
    async with proxmox.Client(connection) as client:
        cluster = await survey(client, ())
        facts = await read_facts(client, cluster, list_reads(implied, cluster), caller=caller)
        more = await read_facts(client, cluster, list_follow_ups(implied, facts), caller=caller)
    facts = replace(
        facts,
        answers={**facts.answers, **more.answers},
        owners=owners or Owners(),
        operator=operator or Operator(api="10.31.5.5", ssh="10.31.5.5", endpoint="10.31.0.11"),
    )
    return list(find_refusals(implied, facts))
