"""A list of firewall rules: read, set as a whole, and created once although answers get lost.

A rule has no id, only a position that shifts with every other change. All of it is therefore done under the
list's turn of the session, and each call that names a position also names the digest of the list that it was
counted in: Proxmox refuses it when somebody else has changed the list since.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.clients import proxmox
from stackyard.provider.create_once import ObjectExistsError, is_unsure, make_subject
from stackyard.provider.resources.firewall.rule_edits import Change, Move, Prepend, next_step
from stackyard.provider.resources.firewall.rules import FirewallRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.provider.journal import Entry
    from stackyard.provider.kinds import Work
    from stackyard.provider.resources.firewall.rule_edits import Step
    from stackyard.provider.values import Object

__all__ = [
    "UnsettledRulesError",
    "create_rules",
    "find_rules",
    "read_rules",
    "remove_rules",
    "rules_state",
    "set_rules",
]

# One answer serves all reads of a refresh.
_AGE_S = 0.5
_MOST_LOST = 5
# What Proxmox says when the list is another one than the call counted in.
_CHANGED = ("detected modified configuration", "no rule at position")


class UnsettledRulesError(StackyardError):
    """A list of firewall rules does not become what it should be."""

    code = "E-PROVIDER-RULES"
    summary = "Firewall rules do not stay as they are set"
    default_remedy = "Look whether something else changes these rules at the same time, and repeat."


async def read_rules(work: Work, path: str, *, max_age_s: float = _AGE_S) -> list[FirewallRule]:
    """Return the rules of a list, in their order."""
    rows, _ = await _read(work, path, max_age_s)
    return rows


async def find_rules(work: Work, path: str) -> list[FirewallRule] | None:
    """Return the rules of a list after a failure; None when they cannot be read either."""
    with contextlib.suppress(StackyardError):
        return await read_rules(work, path, max_age_s=0)
    return None


async def create_rules(work: Work, path: str, identity: str, wanted: Sequence[FirewallRule]) -> None:
    """Fill a list that is empty, or that a killed run of ours began to fill.

    Args:
        work: The operation.
        path: Where the list is.
        identity: The id to import it with.
        wanted: The rules.

    Raises:
        ObjectExistsError: The list has rules of somebody else.
        ProxmoxError: Proxmox refuses a rule.
    """
    # From the first look on: another resource for the same list has to find these rules there.
    async with work.session.rule_lists.turn(path):
        entry = await _claim(work, path, identity, wanted)
        try:
            await _set(work, path, wanted)
        except StackyardError:
            if await find_rules(work, path) == []:
                await work.session.journal.close(entry)
            raise
        finally:
            work.session.journal.leave(entry)


async def _claim(work: Work, path: str, identity: str, wanted: Sequence[FirewallRule]) -> Entry:
    """Write down what a list is going to have."""
    journal, subject = work.session.journal, make_subject(work, identity)
    sent = {"rules": [rule.params() for rule in wanted]}
    entry = journal.take(subject)
    rows = await read_rules(work, path, max_age_s=0)
    if rows and not (entry is not None and _began_with(entry, rows)):
        if entry is not None:
            await journal.close(entry)
        raise ObjectExistsError(
            f"{path} has {len(rows)} rules already, which are not in the state. A resource has a list of "
            "rules for itself. Nothing was changed.",
            remedy=f"Import them with the id {identity}, or remove them.",
        )
    if entry is None:
        return await journal.begin(subject, node="", vm_id=0, sent=sent)
    return await journal.change(entry, sent=sent)


def _began_with(entry: Entry, rows: Sequence[FirewallRule]) -> bool:
    """Tell whether rules are what a run had created when it was killed: it begins with the last one."""
    sent = [FirewallRule.from_answer(one) for one in (entry.sent or {}).get("rules", ())]
    return [row.key for row in rows] == [rule.key for rule in sent[-len(rows) :]]


async def set_rules(work: Work, path: str, wanted: Sequence[FirewallRule]) -> None:
    """Make a list have these rules and no others.

    Raises:
        UnsettledRulesError: Something else changes the list at the same time.
        ProxmoxError: Proxmox refuses a rule.
    """
    async with work.session.rule_lists.turn(path):
        await _set(work, path, wanted)


async def remove_rules(work: Work, path: str, gone: Sequence[FirewallRule]) -> list[FirewallRule]:
    """Remove rules from a list, and return those that others have added to it."""
    async with work.session.rule_lists.turn(path):
        left = await read_rules(work, path, max_age_s=0)
        for rule in gone:
            found = next((row for row in left if row.key == rule.key), None)
            found = found or next((row for row in left if row.conditions == rule.conditions), None)
            if found is not None:
                left = [row for row in left if row is not found]
        await _set(work, path, left)
    return left


def rules_state(rows: Sequence[FirewallRule]) -> Object:
    """Return the blocks of rules."""
    return {"rule": [row.state(position) for position, row in enumerate(rows)]}


async def _set(work: Work, path: str, wanted: Sequence[FirewallRule]) -> None:
    lost = 0
    rows, digest = await _read(work, path, 0)
    # A rule needs three steps at most: to be created, moved and changed.
    for _ in range(3 * (len(rows) + len(wanted)) + _MOST_LOST):
        step = next_step(rows, wanted)
        if step is None:
            return
        try:
            await _perform(work, path, step, rows, digest)
        except proxmox.ProxmoxError as err:
            lost += 1
            found = await _look_again(work, path, err)
            if lost > _MOST_LOST or (found == (rows, digest) and not _may_repeat(err)):
                raise
            rows, digest = found
        else:
            rows, digest = await _read(work, path, 0)
    raise UnsettledRulesError(f"The rules of {path} are still others than they were set to.")


async def _look_again(
    work: Work, path: str, err: proxmox.ProxmoxError
) -> tuple[list[FirewallRule], str | None]:
    """Return the list after a call that failed; what it has tells the next step, whatever came of the call.

    Raises:
        ProxmoxError: The call was refused for what it says.
    """
    if not is_unsure(err):
        raise err
    return await _read(work, path, 0)


def _may_repeat(err: proxmox.ProxmoxError) -> bool:
    if isinstance(err, proxmox.RefusedError):
        return any(words in err.text for words in _CHANGED)
    return True


async def _perform(
    work: Work, path: str, step: Step, rows: Sequence[FirewallRule], digest: str | None
) -> None:
    if isinstance(step, Prepend):
        # The last one first: each takes the first position.
        for rule in reversed(step.rules):
            await work.client.post(path, rule.params(enabled=rule.enabled and step.switched_on))
        return
    at, guard = f"{path}/{step.position}", {"digest": digest}
    # None of these is sent twice: the second time, the position is that of another rule.
    if isinstance(step, Change):
        await work.client.put(at, {**step.rule.changes(rows[step.position]), **guard}, repeatable=False)
    elif isinstance(step, Move):
        await work.client.put(at, {"moveto": step.before, **guard}, repeatable=False)
    else:
        await work.client.delete(at, guard, repeatable=False)


async def _read(work: Work, path: str, max_age_s: float) -> tuple[list[FirewallRule], str | None]:
    listed: list[dict[str, Any]] = await work.client.get(path, max_age_s=max_age_s)
    ordered = sorted(listed, key=lambda row: int(row.get("pos", 0)))
    rows = [FirewallRule.from_answer(row) for row in ordered]
    return rows, next((str(row["digest"]) for row in ordered if row.get("digest")), None)
