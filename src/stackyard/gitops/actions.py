"""What the server does with pull requests: the same work as the verbs of the command line."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.gitops.drift import find_drift, list_drift_targets, open_base
from stackyard.gitops.flow import apply_pull, plan_pull, unlock_pull
from stackyard.gitops.upgrade_review import find_upgrades, name_quarter, review_upgrades

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stackyard.gitops.context import GitopsContext

__all__ = ["BaseIssues", "FlowActions"]


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
class BaseIssues:
    """Keeps issues about the base branch: drift of targets, and newer versions.

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

    async def report(self) -> None:
        """Report newer versions of providers and modules."""
        quarter = name_quarter(datetime.datetime.now(datetime.UTC).date())
        async with open_base(self.context) as checkout:
            await review_upgrades(self.context, await find_upgrades(self.context, checkout), quarter)
