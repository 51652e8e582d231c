"""Newer minor versions as pull requests: one for each stack, which is updated and never doubled.

Such a pull request is planned and reviewed as every other one. A branch that somebody else committed to is
theirs, and one whose pull request was closed stays closed until there is a newer version.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.clients.forge.model import PullState
from stackyard.clients.git.merge import MergeConflictError
from stackyard.clients.git.push import OUR_NAME, commit_all, read_committer
from stackyard.gitops.markdown import code
from stackyard.gitops.model import Credentials
from stackyard.gitops.runs import PROJECT_LINK, TargetRun, run_verb, share_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stackyard.clients.forge.model import PullRequest
    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import Checkout

__all__ = ["UpgradePull", "UpgradeState", "open_upgrade_pulls"]

_BRANCHES = "stackyard/upgrade/"


class UpgradeState(enum.StrEnum):
    """What became of the upgrade of a stack."""

    OPENED = "opened"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    # Somebody closed the pull request with these versions.
    CLOSED = "closed"
    # Somebody else committed to its branch.
    TAKEN = "taken"
    # Nothing can be written: another constraint holds the versions back.
    HELD = "held"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePull:
    """The upgrade of a stack.

    Attributes:
        stack: The stack.
        state: What became of it.
        number: Its pull request; 0 for none.
        branch: Its branch.
        error: The object that `--json` prints of an error; empty where there was none.
    """

    stack: str
    state: UpgradeState
    branch: str
    number: int = 0
    error: Mapping[str, Any]


async def open_upgrade_pulls(
    context: GitopsContext, checkout: Checkout, branch: str, rows: Iterable[Mapping[str, Any]]
) -> tuple[UpgradePull, ...]:
    """Open or update a pull request for each stack that has newer patch or minor versions.

    Args:
        context: What the work needs.
        checkout: The files of the base branch; they are not changed.
        branch: The base branch.
        rows: What `stack upgrade --json` says of providers and modules.

    Raises:
        ForgeError: The forge does not take a pull request.
        GitError: A commit cannot be made or pushed.
    """
    newer: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["patch"] or row["minor"]:
            newer.setdefault(row["stack"], []).append(row)
    return tuple([await _upgrade(context, checkout.commit, branch, name, newer[name]) for name in newer])


async def _upgrade(
    context: GitopsContext, tip: str, base: str, stack: str, rows: Sequence[Mapping[str, Any]]
) -> UpgradePull:
    # A slash would make one branch a folder of another one.
    pull = UpgradePull(
        stack=stack, state=UpgradeState.HELD, branch=_BRANCHES + stack.replace("/", "+"), error={}
    )
    async with context.checkouts.at(tip, branch=base) as place:
        share_store(context, place)
        run = TargetRun(
            verb="stack", target="upgrade", words=("--write", stack), credentials=Credentials.PLAN
        )
        answer = await run_verb(context, place, run)
        if answer.error or answer.status:
            error = answer.error or _first_error(answer.document)
            return _with(pull, UpgradeState.FAILED, error=error)
        text = f"Upgrade providers and modules of {stack}"
        commit = await commit_all(place.folder, tip, text, leave=(PROJECT_LINK,))
        if commit is None:
            return pull
        return await _offer(context, _Offer(pull, place, commit, tip, base, rows))


@dataclass(frozen=True, slots=True)
class _Offer:
    """A commit that is to become a pull request."""

    pull: UpgradePull
    place: Checkout
    commit: str
    tip: str
    base: str
    rows: Sequence[Mapping[str, Any]]


async def _offer(context: GitopsContext, offer: _Offer) -> UpgradePull:
    forge, checkouts, pull = context.forge, context.checkouts, offer.pull
    ref = f"refs/heads/{pull.branch}"
    there = await forge.branch_tip(pull.branch)
    is_same = False
    if there is not None:
        await checkouts.fetch(forge.clone_access, [ref])
        if await _is_taken(context, offer, there):
            return _with(
                pull, UpgradeState.TAKEN, number=_number(await _find(context, offer, PullState.OPEN))
            )
        is_same = await _is_same(context, offer, there)
    if is_same:
        if known := await _find(context, offer, PullState.OPEN):
            return _with(pull, UpgradeState.UNCHANGED, number=known.number)
        if closed := await _find(context, offer, PullState.CLOSED):
            return _with(pull, UpgradeState.CLOSED, number=closed.number)
    else:
        await checkouts.push(forge.clone_access, offer.place, offer.commit, ref, expect=there)
    before = await _find(context, offer, PullState.OPEN)
    title = f"Upgrade providers and modules of {pull.stack}"
    made = await forge.open_pull(title, _describe(offer.rows), pull.branch, offer.base)
    state = UpgradeState.OPENED if before is None else UpgradeState.UPDATED
    return _with(pull, state, number=made.number)


async def _is_taken(context: GitopsContext, offer: _Offer, there: str) -> bool:
    """Return whether somebody else committed to a branch, and it was not merged since."""
    if await read_committer(context.checkouts.mirror, there) == OUR_NAME:
        return False
    if await _find(context, offer, PullState.OPEN):
        return True
    merged = await _find(context, offer, PullState.MERGED)
    return merged is None or merged.head != there


async def _is_same(context: GitopsContext, offer: _Offer, there: str) -> bool:
    """Return whether a merge of the branch as it is gives the very files that were written."""
    checkouts = context.checkouts
    try:
        merged = await checkouts.find_merge_tree(offer.tip, there)
    except MergeConflictError:
        return False
    return merged == await checkouts.find_written_tree(offer.place, offer.commit)


async def _find(context: GitopsContext, offer: _Offer, state: PullState) -> PullRequest | None:
    pulls = await context.forge.pulls(state, base=offer.base)
    return next((one for one in pulls if one.head_branch == offer.pull.branch and not one.is_fork), None)


def _number(pull: PullRequest | None) -> int:
    return 0 if pull is None else pull.number


def _with(
    pull: UpgradePull, state: UpgradeState, *, number: int = 0, error: Mapping[str, Any] | None = None
) -> UpgradePull:
    return UpgradePull(stack=pull.stack, branch=pull.branch, state=state, number=number, error=error or {})


def _first_error(document: Mapping[str, Any]) -> Mapping[str, Any]:
    errors = (one.get("error") for one in document.get("written", ()))
    return next((dict(one) for one in errors if one), {})


def _describe(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| provider or module | version | to |", "|---|---|---|"]
    for row in rows:
        names = (row["name"], row["current"] or "", row["minor"] or row["patch"])
        lines.append("| " + " | ".join(code(str(one)) if one else "" for one in names) + " |")
    return "\n".join(
        (
            "Newer patch and minor versions, as `stackyard stack upgrade --write` writes them.",
            "",
            *lines,
            "",
            "The branch is written again when there are newer ones, until somebody else commits to it.",
        )
    )
