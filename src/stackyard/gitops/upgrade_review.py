"""The review of newer versions of providers and modules, as an issue for each quarter.

It has a table of what is newer on the base branch, and says which command writes the minor versions. A pull
request with them is planned as every other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import StackyardError
from stackyard.gitops.markdown import code
from stackyard.gitops.model import Credentials
from stackyard.gitops.runs import TargetRun, run_verb

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping, Sequence

    from stackyard.gitops.context import GitopsContext
    from stackyard.gitops.model import Checkout

__all__ = ["UpgradeReview", "UpgradeReviewError", "find_upgrades", "name_quarter", "review_upgrades"]

_HEADINGS = ("stack", "provider or module", "version", "patch", "minor", "major")
_MOST_ROWS = 200


class UpgradeReviewError(StackyardError):
    """The versions that the base branch uses cannot be compared with newer ones."""

    code = "E-GITOPS-UPGRADES"
    summary = "Newer versions cannot be looked for"
    default_remedy = "Run `stackyard stack upgrade` in a checkout of the base branch to see what it says."


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReview:
    """What was found.

    Attributes:
        quarter: The quarter: `2026-Q4`.
        newer: How many providers and modules have a newer version.
        unknown: Of how many no version is known, since where they come from did not answer.
        issue: The issue about it that is open; 0 for none.
    """

    quarter: str
    newer: int
    unknown: int
    issue: int


def name_quarter(day: datetime.date) -> str:
    """Return the quarter of a day."""
    return f"{day.year}-Q{(day.month - 1) // 3 + 1}"


async def find_upgrades(context: GitopsContext, checkout: Checkout) -> tuple[Mapping[str, Any], ...]:
    """Return what `stack upgrade --json` says of each provider and module of the base branch.

    Args:
        context: What the work needs.
        checkout: The files of the base branch.

    Raises:
        UpgradeReviewError: The versions of the base branch cannot be read.
    """
    # A verb of all stacks: it has no target, and gets what plans of all targets get.
    run = TargetRun(verb="stack", target="upgrade", credentials=Credentials.PLAN)
    answer = await run_verb(context, checkout, run)
    if answer.error:
        raise UpgradeReviewError(f"{answer.error.get('summary')}: {answer.error.get('detail')}")
    return tuple(answer.document["rows"])


async def review_upgrades(
    context: GitopsContext, found: Sequence[Mapping[str, Any]], quarter: str
) -> UpgradeReview:
    """Open, edit or close the issue of a quarter about newer versions on the base branch.

    Args:
        context: What the work needs.
        found: What there is, of `find_upgrades`.
        quarter: The quarter.

    Raises:
        ForgeError: The forge does not take the issue.
    """
    rows = [row for row in found if row["patch"] or row["minor"] or row["major"]]
    unknown = [row for row in found if row["problem"]]
    issue = await _tell(context, quarter, rows, unknown)
    return UpgradeReview(quarter=quarter, newer=len(rows), unknown=len(unknown), issue=issue)


async def _tell(
    context: GitopsContext,
    quarter: str,
    rows: Sequence[Mapping[str, Any]],
    unknown: Sequence[Mapping[str, Any]],
) -> int:
    """Bring the issue of a quarter up to date, and return it; 0 where none is open."""
    forge = context.forge
    mark = f"<!-- stackyard: upgrade review {quarter} -->"
    found = next(iter(await forge.find_issues(mark)), None)
    if not rows:
        # Where something is not known, nothing is said to be up to date.
        if found is not None and not unknown:
            await forge.edit_issue(found.number, is_open=False)
            return 0
        return 0 if found is None else found.number
    body = "\n\n".join([mark, *_describe(rows, unknown)])[: forge.limits.comment_chars]
    if found is None:
        return (await forge.create_issue(f"Upgrade review {quarter}", body)).number
    if found.body.replace("\r\n", "\n").strip() != body.strip():
        await forge.edit_issue(found.number, body=body)
    return found.number


def _describe(rows: Sequence[Mapping[str, Any]], unknown: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + "---|" * len(_HEADINGS)]
    for row in rows[:_MOST_ROWS]:
        names = (row["stack"], row["name"], row["current"], row["patch"], row["minor"], row["major"])
        lines.append("| " + " | ".join(code(str(one)) if one else "" for one in names) + " |")
    if len(rows) > _MOST_ROWS:
        lines.append(f"| … {len(rows) - _MOST_ROWS} more | | | | | |")
    parts = [f"{len(rows)} providers and modules have a newer version.", "\n".join(lines)]
    if unknown:
        parts.append(
            f"The versions of {len(unknown)} more are not known: where they come from did not answer."
        )
    parts.append(
        "`stackyard stack upgrade --write` writes the patch and minor versions; commit them on a branch and"
        " open a pull request. `--major` takes a new major version, first in stacks that are not critical."
    )
    return parts
