"""Showing what is known of a pull request: its one comment, which is edited, and the statuses of its head."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stackyard.gitops.acknowledge import list_current, read_comments
from stackyard.gitops.approval import find_needs, name_approvals, read_facts
from stackyard.gitops.comment import MARK, CommentView, render_comment
from stackyard.gitops.locks import TargetLocks
from stackyard.gitops.masking import Mask
from stackyard.gitops.model import Credentials, TargetState
from stackyard.gitops.part_store import PullParts
from stackyard.gitops.plan import fingerprint_of
from stackyard.gitops.record import PullRecord, ShownTarget
from stackyard.gitops.statuses import set_statuses
from stackyard.path.stacks.environment import secret_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.clients.forge.model import PullRequest
    from stackyard.gitops.approval import PullFacts
    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import TargetPlan
    from stackyard.gitops.record import PullRecords
    from stackyard.gitops.settings import GitopsSettings

__all__ = ["PullWork", "save", "show"]

_DONE = (TargetState.APPLIED, TargetState.UNCHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PullWork:
    """The work on one pull request.

    Attributes:
        context: What it needs.
        pull: The pull request, as the forge had it last.
        settings: What the base branch requires.
        records: Where it is recorded.
    """

    context: GitopsContext
    pull: PullRequest
    settings: GitopsSettings
    records: PullRecords

    @property
    def locks(self) -> TargetLocks:
        """Which pull requests have targets before their merge."""
        return TargetLocks(self.context.store, self.pull.repository)

    @property
    def parts(self) -> PullParts:
        """What jobs of a matrix planned of it."""
        return PullParts(self.context.store, self.pull.repository, self.pull.number)


async def save(work: PullWork, record: PullRecord) -> PullRecord:
    """Store a record.

    Raises:
        ConflictError: Another process wrote it, so that this one has to stop.
        StoreError: It cannot be stored.
    """
    return await asyncio.to_thread(work.records.put, record)


async def show(work: PullWork, record: PullRecord) -> PullRecord:
    """Edit the comment, set the statuses, and record what was shown.

    What is shown for the first time needs approvals of its own: those that are there by the time that it is
    to be seen are for what was shown before.

    Args:
        work: The work.
        record: What is known of the pull request.

    Raises:
        ForgeError: The forge does not take it.
        StoreError: It cannot be recorded.
    """
    context = work.context
    facts = await read_facts(context.forge, context.checkouts, work.pull, work.settings, record)
    before, shown = record, _list_shown(record, name_approvals(facts.reviews))
    record = replace(record, shown=shown)
    needs = _list_needs(work, record, facts)
    view = CommentView(
        needs=needs,
        places=await _list_places(work, record),
        link=context.link.format(number=work.pull.number),
        mask=Mask(_list_secrets(work, record)),
        limit=context.forge.limits.comment_chars,
    )
    record, url = await _post(work, record, render_comment(record.plan, view))
    if shown != before.shown:
        record = await _note_what_came(work, before, record)
    merging = {} if record.plan.merged else needs
    await set_statuses(context.forge, record.plan, _without_waiting(record, merging), url=url)
    return await save(work, record)


async def _list_places(work: PullWork, record: PullRecord) -> dict[str, str]:
    """Return by target which other pull request has it, and how many are before this one."""
    if not work.settings.is_before_merge:
        return {}
    number = work.pull.number
    locks = await asyncio.to_thread(work.locks.read, [one.target for one in record.plan.targets])
    found = {}
    for name, lock in locks.items():
        if lock.holder != number:
            place = lock.waiting.index(number) + 1 if number in lock.waiting else 0
            queued = f"; this one is number {place} of those that wait" if place else ""
            found[name] = f"pull request {lock.holder} has it until it is merged or closed{queued}"
    return found


async def _note_what_came(work: PullWork, before: PullRecord, record: PullRecord) -> PullRecord:
    """Return a record in which everything that was said until now is about what was shown before."""
    forge = work.context.forge
    came = await read_comments(
        forge, replace(record, shown=before.shown), work.settings, author=work.pull.author
    )
    approvals = name_approvals(await forge.reviews(work.pull.number))
    shown = {
        name: one if before.shown.get(name) == one else replace(one, stale=approvals)
        for name, one in record.shown.items()
    }
    plan = record.plan
    kept = list_current(came, plan.head, plan.tree)
    return replace(came, shown=shown, shown_for=f"{plan.head} {plan.tree}", acknowledged=kept)


def _list_shown(record: PullRecord, approvals: tuple[str, ...]) -> dict[str, ShownTarget]:
    """Return what is shown of each target; approvals that are there are not for what is new."""
    found = {}
    for one in record.plan.targets:
        fingerprint, before = fingerprint_of(record.plan, one), record.shown.get(one.target)
        is_same = before is not None and before.fingerprint == fingerprint
        found[one.target] = (
            before
            if before is not None and is_same
            else ShownTarget(fingerprint=fingerprint, stale=approvals)
        )
    return found


def _list_needs(work: PullWork, record: PullRecord, facts: PullFacts) -> dict[str, tuple[str, ...]]:
    needs = {
        one.target: find_needs(work.settings, record, facts, one)
        for one in record.plan.targets
        if one.state not in _DONE
    }
    return {name: found for name, found in needs.items() if found}


def _without_waiting(record: PullRecord, needs: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return what is needed before a merge: what waits for another target is approved once it has a plan."""
    return {name: found for name, found in needs.items() if not _is_waiting(record.find_target(name))}


def _is_waiting(target: TargetPlan | None) -> bool:
    return target is not None and target.state is TargetState.WAITING


def _list_secrets(work: PullWork, record: PullRecord) -> set[str]:
    """Return the values that runs of the targets log in with, by the names of their variables."""
    context = work.context
    return {
        value
        for one in record.plan.targets
        for which in (Credentials.PLAN, Credentials.APPLY)
        for value in secret_values(
            context.credentials.environment(one.target, which), context.checkouts.folder
        )
    }


async def _post(work: PullWork, record: PullRecord, body: str) -> tuple[PullRecord, str]:
    """Edit the comment, or write it where it is not there yet or was deleted."""
    forge, number = work.context.forge, work.pull.number
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    id_ = record.comment or await _find_own(work)
    comment = None
    if id_ and record.body == digest:
        comment = await forge.comment(number, id_)
    elif id_:
        comment = await forge.edit_comment(number, id_, body)
    if comment is None:
        comment = await forge.create_comment(number, body)
    return replace(record, comment=comment.id, body=digest), comment.url


async def _find_own(work: PullWork) -> int:
    """Return the comment of a process that was killed before it recorded it; 0 for none."""
    forge = work.context.forge
    own = await forge.login()
    for comment in await forge.comments(work.pull.number):
        if comment.author == own and comment.body.startswith(MARK):
            return comment.id
    return 0
