"""The run of `stackyard gitops report`."""

from __future__ import annotations

import datetime
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stackyard.cli.result import Result
from stackyard.cli.runs.gitops import open_context
from stackyard.gitops.drift import open_base
from stackyard.gitops.upgrade_review import name_quarter, review_upgrades

if TYPE_CHECKING:
    from stackyard.cli.session import Session

__all__ = ["run_gitops_report"]


async def run_gitops_report(session: Session, values: dict[str, Any]) -> Result:
    """Report newer versions."""
    quarter = name_quarter(datetime.datetime.now(datetime.UTC).date())
    async with open_context(session, values) as context, open_base(context) as checkout:
        found = await review_upgrades(context, checkout, quarter)
    where = f" (issue {found.issue})" if found.issue else ""
    text = f"{found.newer} providers and modules have a newer version{where}."
    unknown = f" The versions of {found.unknown} are not known." if found.unknown else ""
    return Result(document=asdict(found), show=lambda writer: writer.line(text + unknown))
