"""The check of what is about to be served, in a process of its own that ends when it takes too long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stackyard.base.process.worker import WorkCrashedError, Worker, WorkFailedError, WorkTimeoutError
from stackyard.secrets.check.published import find_secret_candidates, read_rules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stackyard.clients.git.history import Candidate

__all__ = ["PublishedCheck"]

# The start of the process included, on a machine that is busy.
_TIMEOUT_S = 30.0
_BYTES_PER_S = 500_000
# Rules that cannot be read, in the place of some that no one could read.
_UNREADABLE = b"\0"


class PublishedCheck:
    """Tells what must not leave the machine. What cannot be checked must not."""

    def __init__(self) -> None:
        self._worker = Worker()
        # Of our own: who waits for another repository to be checked has not begun, and is not late.
        self._turn = asyncio.Lock()

    async def __call__(self, candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
        """Tell of each candidate whether it must stay here."""
        return await self._check(candidates, await self._usable(rules))

    async def close(self) -> None:
        """End the process."""
        await self._worker.close()

    async def _usable(self, rules: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return rules that a process survives reading."""
        if not rules:
            return rules
        try:
            async with self._turn:
                await self._worker.call(read_rules, rules, timeout_s=_TIMEOUT_S)
        except (WorkCrashedError, WorkFailedError, WorkTimeoutError):
            return dict.fromkeys(rules, _UNREADABLE)
        return rules

    async def _check(self, candidates: Sequence[Candidate], rules: Mapping[str, bytes]) -> list[bool]:
        timeout_s = _TIMEOUT_S + sum(len(one.content) for one in candidates) / _BYTES_PER_S
        try:
            async with self._turn:
                return await self._worker.call(find_secret_candidates, candidates, rules, timeout_s=timeout_s)
        except (WorkCrashedError, WorkFailedError, WorkTimeoutError):
            if len(candidates) <= 1:
                return [True] * len(candidates)
        # One of them is to blame, and the others are not to suffer for it.
        half = len(candidates) // 2
        return [
            *await self._check(candidates[:half], rules),
            *await self._check(candidates[half:], rules),
        ]
