"""Drift: what differs from the base branch, in one issue for each target that we open, edit and close.

A target is planned on the last commit of the base branch. What that plan would change is what somebody
changed by hand, or what is merged and not applied; the issue shows the plan that would mend it.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import hashlib
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.jsontext import JsonError, parse_json
from stackyard.base.documents.limits import SMALL
from stackyard.clients.forge.failures import ForgeNotFoundError
from stackyard.clients.objects import ANYTHING
from stackyard.gitops.issues import describe_drift, describe_end, issue_mark
from stackyard.gitops.model import Credentials
from stackyard.gitops.runs import TargetRun, run_verb, share_store
from stackyard.state import layout
from stackyard.state.service import StateService

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import Checkout

__all__ = ["DriftFound", "DriftState", "find_drift", "list_drift_targets", "open_base"]

# What can be planned on the files of a commit alone.
_KINDS = ("stack", "env", "hypervisor", "cluster")
_DEPLOYMENT = "deployment"


class DriftState(enum.StrEnum):
    """Whether a target is as the base branch says."""

    NONE = "none"
    DRIFT = "drift"
    # It could not be planned: nothing is known, and its issue stays as it is.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftFound:
    """What was found of a target.

    Attributes:
        target: The target.
        state: Whether it is as the base branch says.
        document: What `plan --json` printed.
        error: What it printed of an error; empty where there was none.
        issue: The issue about it that is open; 0 for none.
    """

    target: str
    state: DriftState
    document: Mapping[str, Any]
    error: Mapping[str, Any]
    issue: int = 0


async def list_drift_targets(context: GitopsContext) -> tuple[str, ...]:
    """Return the targets that were applied and not destroyed, in their order.

    Raises:
        StoreError: The store cannot be read.
    """
    return await asyncio.to_thread(_list_applied, context)


def _list_applied(context: GitopsContext) -> tuple[str, ...]:
    with closing(context.store.read()) as objects:
        records = [one for one in StateService(objects).targets.all() if not one.is_destroyed]
    names = {f"{one.kind}:{one.name.partition('@')[0]}" for one in records if one.kind in _KINDS}
    if any(one.kind == _DEPLOYMENT for one in records):
        names.add(_DEPLOYMENT)
    return tuple(sorted(names))


@contextlib.asynccontextmanager
async def open_base(context: GitopsContext) -> AsyncIterator[Checkout]:
    """Give the files of the last commit of the default branch.

    Raises:
        ForgeError: The forge cannot say which that is.
        GitError: It cannot be fetched.
    """
    branch = (await context.forge.repository()).default_branch
    ref = f"refs/heads/{branch}"
    commits = await context.checkouts.fetch(context.forge.clone_access, [ref])
    async with context.checkouts.at(commits[ref], branch=branch) as checkout:
        share_store(context, checkout)
        yield checkout


async def find_drift(context: GitopsContext, checkout: Checkout, target: str) -> DriftFound:
    """Plan a target on the base branch, and open, edit or close its issue.

    Args:
        context: What the work needs.
        checkout: The files of the base branch.
        target: The target.

    Raises:
        ForgeError: The forge does not take the issue.
        StoreError: The store cannot be used.
    """
    run = TargetRun(verb="plan", target=target, words=(), credentials=Credentials.PLAN)
    answer = await run_verb(context, checkout, run)
    if answer.error:
        state = DriftState.UNKNOWN
    else:
        state = DriftState.DRIFT if answer.document.get("has_changes") else DriftState.NONE
    found = DriftFound(target=target, state=state, document=answer.document, error=answer.error)
    issue = await _tell(context, checkout, found, answer.secrets)
    return DriftFound(target=target, state=state, document=answer.document, error=answer.error, issue=issue)


async def _tell(
    context: GitopsContext, checkout: Checkout, found: DriftFound, secrets: tuple[str, ...]
) -> int:
    """Bring the issue of a target up to date, and return it; 0 where none is open."""
    repository = (await context.forge.repository()).name
    key = layout.gitops(repository, "drift", found.target)
    known = await asyncio.to_thread(_read, context, key)
    number = int(known.get("issue", 0)) or await _find_issue(context, found.target)
    if found.state is DriftState.UNKNOWN:
        return number
    if found.state is DriftState.NONE:
        if number:
            await _close(context, number, found.target, checkout.commit)
            await asyncio.to_thread(_write, context, key, {})
        return 0
    title, body = describe_drift(found.target, found.document, checkout.commit, secrets)
    body = body[: context.forge.limits.comment_chars]
    digest = hashlib.sha256(f"{title}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()
    if number and known.get("digest") == digest and known.get("issue") == number:
        return number
    number = await _write_issue(context, number, title, body)
    await asyncio.to_thread(_write, context, key, {"issue": number, "digest": digest})
    return number


async def _find_issue(context: GitopsContext, target: str) -> int:
    """Return the open issue of a process that was killed before it recorded it; 0 for none."""
    issues = await context.forge.find_issues(issue_mark(target))
    return issues[0].number if issues else 0


async def _write_issue(context: GitopsContext, number: int, title: str, body: str) -> int:
    """Edit an issue, and open it again where somebody closed it; or open a new one."""
    if number:
        with contextlib.suppress(ForgeNotFoundError):
            return (await context.forge.edit_issue(number, title=title, body=body, is_open=True)).number
    return (await context.forge.create_issue(title, body)).number


async def _close(context: GitopsContext, number: int, target: str, commit: str) -> None:
    title, body = describe_end(target, commit)
    with contextlib.suppress(ForgeNotFoundError):
        await context.forge.edit_issue(number, title=title, body=body, is_open=False)


def _read(context: GitopsContext, key: str) -> dict[str, Any]:
    with closing(context.store.open()) as objects:
        stored = objects.get(key)
    if stored is None:
        return {}
    try:
        said = parse_json(stored.data, SMALL)
    except JsonError:
        # The issue is found by its mark.
        return {}
    return said if isinstance(said, dict) else {}


def _write(context: GitopsContext, key: str, said: Mapping[str, Any]) -> None:
    with closing(context.store.open()) as objects:
        objects.put(key, orjson.dumps(dict(said)), expect=ANYTHING)
