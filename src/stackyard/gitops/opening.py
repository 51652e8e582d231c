"""Beginning work on a pull request: what the forge and git say of it now, and whether it is planned."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import ForgeKind, PullState
from stackyard.gitops.fork_point import find_rules
from stackyard.gitops.record import PullRecords
from stackyard.gitops.settings import read_settings
from stackyard.gitops.show import PullWork

if TYPE_CHECKING:
    from stackyard.clients.forge.model import PullRequest
    from stackyard.gitops.context import GitopsContext

__all__ = ["open_work", "why_not"]


async def open_work(context: GitopsContext, number: int) -> PullWork:
    """Return the work on a pull request, with its commits and those of its base branch here.

    Args:
        context: What the work needs.
        number: The pull request.

    Raises:
        GitopsSettingsError: The rules of the base branch cannot be read.
        ForgeError: The forge does not answer.
        StoreError: The store cannot be used.
    """
    forge = context.forge
    pull = await forge.pull(number)
    names = [f"refs/heads/{pull.base_branch}", _head_ref(forge.kind, pull)]
    found = await context.checkouts.fetch(forge.clone_access, names)
    tip = found[names[0]]
    records = PullRecords(context.store, pull.repository)
    known = await asyncio.to_thread(records.get, number)
    rules = tip if pull.state is not PullState.MERGED else await find_rules(context.checkouts, pull, known)
    settings = await read_settings(context.checkouts, rules)
    return PullWork(context=context, pull=replace(pull, base=tip), settings=settings, records=records)


def _head_ref(kind: ForgeKind, pull: PullRequest) -> str:
    """Return the ref by which a forge gives the commits of a pull request, from forks too."""
    if kind is ForgeKind.GITLAB:
        return f"refs/merge-requests/{pull.number}/head"
    return f"refs/pull/{pull.number}/head"


def why_not(work: PullWork) -> str:
    """Return why a pull request is not planned; empty where it is."""
    if work.pull.is_draft and not work.settings.plans_drafts:
        return "It is a draft: it is planned once it is ready."
    if work.pull.is_fork and not work.settings.plans_forks:
        return "It comes from a fork: `stackyard.yaml` does not let forks be planned."
    return ""
