"""The run of `stackyard gitops report`."""

from __future__ import annotations

import datetime
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import ExitStatus
from stackyard.cli.result import Result
from stackyard.cli.runs.gitops import open_context
from stackyard.gitops.drift import open_base
from stackyard.gitops.upgrade_pulls import UpgradePull, UpgradeState, open_upgrade_pulls
from stackyard.gitops.upgrade_review import find_upgrades, name_quarter, review_upgrades

if TYPE_CHECKING:
    from stackyard.cli.session import Session
    from stackyard.cli.views.text_writer import TextWriter

__all__ = ["run_gitops_report"]


async def run_gitops_report(session: Session, values: dict[str, Any]) -> Result:
    """Report newer versions."""
    quarter = name_quarter(datetime.datetime.now(datetime.UTC).date())
    async with open_context(session, values) as context, open_base(context) as checkout:
        rows = await find_upgrades(context, checkout)
        found = await review_upgrades(context, rows, quarter)
        pulls: tuple[UpgradePull, ...] = ()
        if values["has_pulls"]:
            branch = (await context.forge.repository()).default_branch
            pulls = await open_upgrade_pulls(context, checkout, branch, rows)
    where = f" (issue {found.issue})" if found.issue else ""
    text = f"{found.newer} providers and modules have a newer version{where}."
    unknown = f" The versions of {found.unknown} are not known." if found.unknown else ""
    lines = [text + unknown, *map(_describe, pulls)]
    document = {**asdict(found), "pulls": [asdict(one) for one in pulls]}
    is_failed = any(one.state is UpgradeState.FAILED for one in pulls)
    return Result(
        document=document,
        show=lambda writer: _show(writer, lines),
        status=ExitStatus.FAILED if is_failed else ExitStatus.DONE,
    )


def _describe(pull: UpgradePull) -> str:
    number = f" (pull request {pull.number})" if pull.number else ""
    why = f": {pull.error.get('detail', '')}" if pull.error else ""
    return f"{pull.stack}: {pull.state.value}{number}{why}"


def _show(writer: TextWriter, lines: list[str]) -> None:
    for line in lines:
        writer.line(line)
