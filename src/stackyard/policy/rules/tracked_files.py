"""M10: git tracks no state, plan, decrypted file or key, and secrets files are encrypted in the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext

__all__ = ["RULE"]


def _check(context: PolicyContext) -> Iterator[Finding | Skipped]:
    if context.tracked is None:
        yield Skipped(rule="M10", reason="this is not a git repository")
        return
    for one in context.tracked:
        yield Finding(rule="M10", detail=one.detail, where=Location(one.path, one.line), remedy=one.remedy)


RULE = Rule(
    id="M10",
    title="git tracks no state, plan, decrypted file or key; secrets files are encrypted in the index",
    why="What is committed once is in every clone for ever, and states hold the secrets of their resources.",
    check=_check,
)
