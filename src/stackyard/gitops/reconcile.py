"""Reconciliation: what no webhook told is found by asking the forge.

A pull request is looked at where it is not as the last look saw it: another head, base, state or time of
change. So each change is looked at once more than needed at most, since our own comment is a change too.
"""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import PullState
from stackyard.clients.forge.texts import read_time
from stackyard.gitops.jobs import look_job
from stackyard.gitops.looks import Since

if TYPE_CHECKING:
    from stackyard.clients.forge.model import PullRequest
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.looks import Looks
    from stackyard.gitops.queue.protocol import JobQueue

__all__ = ["Reconciliation"]

_EPOCH = "1970-01-02T00:00:00Z"
_OVERLAP = datetime.timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Finds the pull requests that have to be looked at.

    Attributes:
        forge: The repository on its forge.
        queue: Where they are put.
        looks: What was seen of them.
    """

    forge: Forge
    queue: JobQueue
    looks: Looks

    async def reconcile(self) -> int:
        """Put what has to be looked at into the queue, and return how many pull requests that are.

        Raises:
            StackyardError: The forge or the store cannot be used.
        """
        since = await self.looks.since() or await self._begin()
        after = _earlier(since.updated_at)
        ended = [
            *await self.forge.pulls(PullState.MERGED, updated_after=after),
            *await self.forge.pulls(PullState.CLOSED, updated_after=after),
        ]
        # In the order in which they were merged, as far as the forge tells.
        ended.sort(key=lambda pull: read_time(pull.updated_at))
        tips: dict[str, str] = {}
        is_open = await self.forge.pulls(PullState.OPEN)
        found = [pull for pull in is_open if await self._has_changed(pull, tips)]
        found += [pull for pull in ended if await self._has_ended_since(pull, since)]
        for pull in found:
            await self.queue.put(look_job(pull.number))
        if ended and read_time(ended[-1].updated_at) > read_time(since.updated_at):
            await self.looks.put_since(dataclasses.replace(since, updated_at=ended[-1].updated_at))
        return len(found)

    async def _begin(self) -> Since:
        """Return from when on pull requests are looked after: those that are merged now are not ours."""
        ended = [*await self.forge.pulls(PullState.MERGED), *await self.forge.pulls(PullState.CLOSED)]
        since = Since(
            number=max((pull.number for pull in ended), default=0),
            updated_at=max((pull.updated_at for pull in ended), key=read_time, default=_EPOCH),
        )
        await self.looks.put_since(since)
        return since

    async def _has_changed(self, pull: PullRequest, tips: dict[str, str]) -> bool:
        """Return whether an open pull request is not as the last look saw it."""
        if pull.base_branch not in tips:
            tips[pull.base_branch] = await self.forge.branch_tip(pull.base_branch) or ""
        seen = await self.looks.get(pull.number)
        now = (pull.state.value, pull.head, tips[pull.base_branch], pull.updated_at)
        return (seen.state, seen.head, seen.base, seen.updated_at) != now

    async def _has_ended_since(self, pull: PullRequest, since: Since) -> bool:
        """Return whether a pull request that is merged or closed was not looked at since."""
        seen = await self.looks.get(pull.number)
        if not seen.state and pull.number <= since.number:
            return False
        return (seen.state, seen.head, seen.updated_at) != (pull.state.value, pull.head, pull.updated_at)


def _earlier(moment: str) -> str:
    """Return a time a little before one: forges count in seconds, and two changes may share one."""
    found = read_time(moment) - _OVERLAP
    return found.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
