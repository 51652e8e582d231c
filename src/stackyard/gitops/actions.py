"""What the server does with pull requests: the same work as the verbs of the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.gitops.drift import find_drift, list_drift_targets, open_base
from stackyard.gitops.flow import apply_pull, plan_pull, unlock_pull

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.gitops.context import GitopsContext

__all__ = ["BaseDrift", "FlowActions"]


@dataclass(frozen=True, slots=True)
class FlowActions:
    """Plans and applies pull requests; each call finds out what is already done.

    Args:
        context: What the work needs.
    """

    context: GitopsContext

    async def plan(self, number: int, *, force: bool) -> None:
        """Plan what has no plan that fits, and show it; end the work on one that was closed."""
        await plan_pull(self.context, number, force=force)

    async def apply(self, number: int, targets: frozenset[str] | None) -> None:
        """Apply what was reviewed of some targets, or of all."""
        await apply_pull(self.context, number, only=targets)

    async def unlock(self, number: int) -> None:
        """Give back the targets that a pull request holds."""
        await unlock_pull(self.context, number)


@dataclass(frozen=True, slots=True)
class BaseDrift:
    """Compares targets with the base branch, and keeps an issue for each that differs.

    Args:
        context: What the work needs.
    """

    context: GitopsContext

    async def targets(self) -> Sequence[str]:
        """Return the targets that were applied."""
        return await list_drift_targets(self.context)

    async def check(self, target: str) -> None:
        """Look at a target, and keep its issue."""
        async with open_base(self.context) as checkout:
            await find_drift(self.context, checkout, target)
