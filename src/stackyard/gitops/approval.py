"""What is still needed before a target is applied: approvals of the plan that is shown, owners, checks.

An approval counts for the plan that was shown when it was given. The ones that were there when a plan was
shown are for another one: no clock decides it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import CommitState, Permission, ReviewVerdict
from stackyard.gitops.markdown import code
from stackyard.gitops.model import TargetState
from stackyard.gitops.plan import fingerprint_of
from stackyard.gitops.rights import find_members, find_right

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.forge.model import CommitStatus, PullRequest, Review
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.checkout import Checkouts
    from stackyard.gitops.model import TargetPlan
    from stackyard.gitops.record import PullRecord
    from stackyard.gitops.settings import GitopsSettings, Requirements

__all__ = ["PullFacts", "find_needs", "list_approvers", "name_approvals", "read_facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PullFacts:
    """What the forge says of a pull request that an apply depends on.

    Attributes:
        pull: The pull request.
        reviews: What each reviewer said last.
        statuses: What programs say of its head.
        is_up_to_date: Whether its branch contains the last commit of the base branch.
        rights: What reviewers may do in the repository.
        teams: By `ORG/TEAM`, who of the reviewers is in it.
    """

    pull: PullRequest
    reviews: Sequence[Review] = ()
    statuses: Sequence[CommitStatus] = ()
    is_up_to_date: bool = True
    rights: Mapping[str, Permission] = field(default_factory=dict)
    teams: Mapping[str, frozenset[str]] = field(default_factory=dict)


async def read_facts(
    forge: Forge, checkouts: Checkouts, pull: PullRequest, settings: GitopsSettings, record: PullRecord
) -> PullFacts:
    """Ask the forge and git for what an apply depends on.

    Args:
        forge: The repository on its forge.
        checkouts: Its commits.
        pull: The pull request.
        settings: What the base branch requires.
        record: What is known of the pull request.

    Raises:
        ForgeError: The forge cannot say.
    """
    reviews = await forge.reviews(pull.number)
    people = {*(one.author for one in reviews), *(one.login for one in record.approved)}
    rights = {login: await find_right(forge, login) for login in sorted(people)}
    required = [settings.find_requirements(one.target) for one in record.plan.targets]
    named = {owner for one in required for owner in one.owners if "/" in owner}
    teams = {team: await find_members(forge, team, sorted(people)) for team in sorted(named)}
    base = await checkouts.find_merge_base(record.plan.base, pull.head)
    return PullFacts(
        pull=pull,
        reviews=reviews,
        statuses=await forge.statuses(pull.head) if any(one.checks for one in required) else (),
        is_up_to_date=base == record.plan.base,
        rights=rights,
        teams=teams,
    )


def name_approvals(reviews: Sequence[Review]) -> tuple[str, ...]:
    """Return what tells the approvals that are there from later ones."""
    approvals = (one for one in reviews if one.verdict is ReviewVerdict.APPROVED)
    return tuple(sorted(_name(one) for one in approvals))


def _name(review: Review) -> str:
    return f"{review.author} {review.submitted_at} {review.commit}"


def list_approvers(record: PullRecord, facts: PullFacts, target: TargetPlan) -> tuple[str, ...]:
    """Return who approved the plan of a target that is shown, and has the right to."""
    shown = record.shown.get(target.target)
    if shown is None or not _is_shown(record, target):
        return ()
    found = [
        review.author
        for review in facts.reviews
        if review.verdict is ReviewVerdict.APPROVED
        and _name(review) not in shown.stale
        and review.commit in ("", record.plan.head)
    ]
    found += [one.login for one in record.approved if shown.fingerprint in one.fingerprints]
    return tuple(
        login
        for login in dict.fromkeys(found)
        if login != facts.pull.author and facts.rights.get(login, Permission.NONE) >= Permission.WRITE
    )


def _is_shown(record: PullRecord, target: TargetPlan) -> bool:
    """Return whether this very plan of a target is the one that the comment shows."""
    shown = record.shown.get(target.target)
    return shown is not None and shown.fingerprint == fingerprint_of(record.plan, target)


def find_needs(
    settings: GitopsSettings, record: PullRecord, facts: PullFacts, target: TargetPlan
) -> tuple[str, ...]:
    """Return what is still needed before a target may be applied, as Markdown; nothing where all is there."""
    needed = settings.find_requirements(target.target)
    found = list(_needs_of_state(target))
    if target.document and not _is_shown(record, target):
        found.append("this plan to be shown")
    if facts.pull.is_draft:
        found.append("the pull request to be ready: it is a draft")
    approvers = list_approvers(record, facts, target)
    missing = needed.approvals - len(approvers)
    if missing > 0:
        plural = "s" if missing > 1 else ""
        found.append(f"{missing} more approval{plural} of this plan by somebody else who may write here")
    if needed.owners and not _has_owner(needed, approvers, facts):
        found.append(f"the approval of an owner: {', '.join(map(code, needed.owners))}")
    against = [one.author for one in facts.reviews if one.verdict is ReviewVerdict.CHANGES_REQUESTED]
    for login in against:
        if facts.rights.get(login, Permission.NONE) >= Permission.WRITE:
            found.append(f"the agreement of {code(login)}, who asks for changes")
    well = {one.context for one in facts.statuses if one.state is CommitState.SUCCESS}
    found += [f"the check {code(name)}" for name in needed.checks if name not in well]
    if needed.is_up_to_date and not facts.is_up_to_date:
        found.append("the branch to contain the last commit of the base branch")
    return tuple(found)


def _needs_of_state(target: TargetPlan) -> list[str]:
    match target.state:
        case TargetState.BLOCKED:
            return ["its code to be allowed"]
        case TargetState.REFUSED:
            return ["what the guard refuses to be permitted, or corrected"]
        case TargetState.FAILED:
            return ["it to be mended, and then `stackyard plan` as a comment"]
        case TargetState.WAITING:
            return [f"{', '.join(map(code, target.waits_for)) or 'others'} to be applied first"]
        case _:
            return []


def _has_owner(needed: Requirements, approvers: Sequence[str], facts: PullFacts) -> bool:
    return any(
        login == owner or login in facts.teams.get(owner, frozenset())
        for login in approvers
        for owner in needed.owners
    )
