"""The run of `stackyard gitops check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus, UsageError
from stackyard.cli.result import Result
from stackyard.cli.runs.gitops import open_context
from stackyard.gitops.protection import check_protection, fix_protection
from stackyard.gitops.settings import read_settings

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter
    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.protection import ProtectionReport
    from stackyard.gitops.settings import GitopsSettings

__all__ = ["run_gitops_check"]


async def run_gitops_check(session: Session, values: dict[str, Any]) -> Result:
    """Check the protection of the base branch, and mend it where that is asked for."""
    async with open_context(session, values) as context:
        branch = values["branch"] or (await context.forge.repository()).default_branch
        settings = await _read_rules(context, branch)
        found = await check_protection(context.forge, branch, settings)
        now = await fix_protection(context.forge, found, settings) if values["fix"] else found
    document = {
        "branch": branch,
        "missing": list(now.missing),
        "fixed": [one for one in found.missing if one not in now.missing],
        "advice": list(now.advice),
    }
    return Result(
        document=document,
        show=lambda writer: _show(writer, found, now),
        status=ExitStatus.FAILED if now.missing else ExitStatus.DONE,
    )


async def _read_rules(context: GitopsContext, branch: str) -> GitopsSettings:
    tip = await context.forge.branch_tip(branch)
    if tip is None:
        raise UsageError(f"The repository has no branch {branch}.")
    ref = f"refs/heads/{branch}"
    commits = await context.checkouts.fetch(context.forge.clone_access, [ref])
    return await read_settings(context.checkouts, commits[ref])


def _show(writer: TextWriter, found: ProtectionReport, now: ProtectionReport) -> None:
    for one in found.missing:
        is_fixed = one not in now.missing
        writer.line(f"{'mended: ' if is_fixed else ''}{one}", style="green" if is_fixed else "red")
    for one in now.advice:
        writer.line(one, style="yellow")
    if now.missing:
        writer.line("`stackyard gitops check --fix` sets what is missing.")
    elif not found.missing:
        writer.line(f"{now.branch} takes only what was planned and reviewed.", style="green")
