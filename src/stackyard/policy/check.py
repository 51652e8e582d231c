"""Running the rules on a repository."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.errors import UsageError
from stackyard.policy.context import read_context
from stackyard.policy.exceptions import REGO, Excepted, sort_findings
from stackyard.policy.model import Finding, Level, Rule, Skipped
from stackyard.policy.rego import judge_with_rego
from stackyard.policy.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stackyard.policy.context import PolicyContext
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["PolicyRequest", "PolicyResult", "check_policy", "choose_rules"]

_ALWAYS = "M0"
_LEVELS = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRequest:
    """What to check.

    Attributes:
        rules: The ids of the rules; all of them where there are none.
        paths: Only findings at or below these paths, from the top of the repository; else all.
        base: The commit to compare with.
        today: The day that decides which exceptions are expired.
    """

    rules: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    base: str | None = None
    today: datetime.date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """What the rules found.

    Attributes:
        rules: The rules that were checked.
        modules: How many modules there are.
        stacks: How many stacks there are.
        findings: What counts, sorted by rule and place.
        excepted: What is accepted.
        skipped: Rules that could not be checked.
    """

    rules: tuple[Rule, ...]
    modules: int
    stacks: int
    findings: tuple[Finding, ...]
    excepted: tuple[Excepted, ...]
    skipped: tuple[Skipped, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that fail the check."""
        return tuple(one for one in self.findings if one.level is Level.ERROR)

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "passed": not self.errors,
            "modules": self.modules,
            "stacks": self.stacks,
            "rules": [one.id for one in self.rules],
            "skipped": [{"rule": one.rule, "reason": one.reason} for one in self.skipped],
            "findings": [one.document() for one in self.findings],
            "excepted": [one.document() for one in self.excepted],
        }


def choose_rules(ids: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules of some ids; that files can be read is always checked.

    Raises:
        UsageError: There is no such rule.
    """
    known = {one.id: one for one in RULES}
    wanted = [part.strip().upper() for one in ids for part in one.split(",") if part.strip()]
    wrong = [one for one in wanted if one not in known]
    if wrong:
        raise UsageError(f"There is no rule {', '.join(wrong)}; the rules are {', '.join(known)}.")
    return tuple(one for one in RULES if not wanted or one.id in wanted or one.id == _ALWAYS)


async def check_policy(repository: StackRepository, request: PolicyRequest) -> PolicyResult:
    """Check a repository.

    Raises:
        UsageError: There is no such rule.
        NothingToCheckError: There is neither a module nor a stack.
        BaseNotFoundError: There is no commit to compare with.
        GitError: git failed, or does not trust the repository.
    """
    rules = choose_rules(request.rules)
    context = await prepare(repository, rules, request.base)
    found: list[Finding | Skipped] = [one for rule in rules for one in rule.check(context)]
    repository.cache.save()
    # With only a part of the rules or of the files, nobody can say that an exception covers nothing.
    chosen = frozenset(rule.id for rule in rules) | (frozenset() if request.rules else {REGO})
    today = request.today or datetime.date.today()
    if not request.rules:
        found += await judge_with_rego(context)
    findings = (one for one in found if isinstance(one, Finding) and _is_below(context, one, request.paths))
    result = sort_findings(context, findings, frozenset() if request.paths else chosen, today)
    return PolicyResult(
        rules=rules,
        modules=len(context.modules),
        stacks=len(context.stacks),
        findings=_sort(rules, result.findings),
        excepted=result.excepted,
        skipped=tuple(one for one in found if isinstance(one, Skipped)),
    )


async def prepare(repository: StackRepository, rules: Iterable[Rule], base: str | None) -> PolicyContext:
    """Read everything that some rules look at."""
    context = read_context(repository)
    ids = {one.id for one in rules}
    if "M10" in ids:
        from stackyard.policy.tracked import scan_tracked  # lazy: only for this rule

        context.tracked = await scan_tracked(repository)
    if base is not None and "M12" in ids:
        from stackyard.policy.base_code import read_base  # lazy: only for this rule

        context.base = await read_base(repository, base)
    return context


def _is_below(context: PolicyContext, finding: Finding, paths: Sequence[str]) -> bool:
    place = context.from_root(finding.where.path)
    return not paths or any(place == path or place.startswith(f"{path}/") or path == "." for path in paths)


def _sort(rules: Sequence[Rule], findings: Iterable[Finding]) -> tuple[Finding, ...]:
    order = {one.id: number for number, one in enumerate(rules)}
    return tuple(
        sorted(
            findings,
            key=lambda one: (
                order.get(one.rule, len(order)),
                one.rule,
                _LEVELS[one.level],
                one.where.path,
                one.where.line or 0,
            ),
        )
    )
