"""What the base branch has to require, so that nothing reaches it but what was reviewed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.clients.forge.model import ForgeKind, Protection
from stackyard.gitops.statuses import STATUS

if TYPE_CHECKING:
    from stackyard.clients.forge.protocol import Forge
    from stackyard.gitops.settings import GitopsSettings

__all__ = ["ProtectionReport", "check_protection", "fix_protection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectionReport:
    """What a branch requires, and what it does not.

    Attributes:
        branch: The branch.
        missing: What is missing, for a person; nothing where all is there.
        advice: What would be better, and is not required.
        wanted: What it would have to require: what it requires now, and what is missing.
    """

    branch: str
    missing: tuple[str, ...]
    advice: tuple[str, ...]
    wanted: Protection


async def check_protection(forge: Forge, branch: str, settings: GitopsSettings) -> ProtectionReport:
    """Compare what a branch requires with what the rules for pull requests need.

    Args:
        forge: The repository.
        branch: The base branch.
        settings: The rules.

    Raises:
        ForgeError: The forge cannot say.
    """
    found = await forge.protection(branch)
    now = Protection(branch=branch) if found is None else found
    approvals = settings.requirements.approvals
    missing = []
    if found is None:
        missing.append("It is not protected.")
    if not now.blocks_pushes:
        missing.append("It accepts direct pushes: what is pushed was never planned or reviewed.")
    # GitLab requires no status by its name, only all that are there.
    is_checked = STATUS in now.checks or (forge.kind is ForgeKind.GITLAB and now.requires_all_checks)
    if not is_checked:
        missing.append(f"It does not require the status `{STATUS}`: a plan that failed can be merged.")
    if now.approvals < approvals:
        missing.append(f"It requires {now.approvals} approvals, and the rules of stackyard.yaml {approvals}.")
    advice = [] if now.binds_admins else ["Administrators may go past it."]
    wanted = dataclasses.replace(
        now,
        blocks_pushes=True,
        checks=now.checks if is_checked else (*now.checks, STATUS),
        approvals=max(now.approvals, approvals),
    )
    return ProtectionReport(branch=branch, missing=tuple(missing), advice=tuple(advice), wanted=wanted)


async def fix_protection(
    forge: Forge, report: ProtectionReport, settings: GitopsSettings
) -> ProtectionReport:
    """Have a branch require what is missing, and return what is missing then.

    Args:
        forge: The repository.
        report: What was found.
        settings: The rules.

    Raises:
        ForgeError: The forge refuses it: the token may have too few rights.
    """
    if report.missing:
        await forge.protect(report.wanted)
    return await check_protection(forge, report.branch, settings)
