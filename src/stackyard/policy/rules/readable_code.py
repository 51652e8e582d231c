"""M0: every file of code can be read, and every stack is valid; the other rules judge what can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext

__all__ = ["RULE"]


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.folders:
        for path, said in folder.code.items():
            if said.problem is not None:
                line, text = said.problem
                yield Finding(
                    rule="M0",
                    detail=f"The file cannot be read whole: {text}.",
                    where=Location(path, line),
                    remedy="Correct the file: `tofu validate` says more. Rules judge only what can be read.",
                )
    for name, error in context.repository.broken.items():
        remedy = error.diagnostics[0].kind.remedy if error.diagnostics else error.remedy
        reasons = error.diagnostics or (error,)
        for one in reasons:
            where = one.where or Location(context.repository.prefix or ".")
            yield Finding(
                rule="M0",
                detail=f"The stack `{name}` is not valid: {one.detail}",
                where=_shown(context, where),
                remedy=remedy,
            )


def _shown(context: PolicyContext, where: Location) -> Location:
    """Return a place, which is as the user would type it here, from the top of the tree."""
    import os  # lazy: only for a stack that is not valid

    path = os.path.relpath(os.path.abspath(where.path), context.repository.tree.top)
    return Location(path, where.line)


RULE = Rule(
    id="M0",
    title="Every file of code can be read, and every stack is valid",
    why="A rule cannot judge what it cannot read.",
    check=_check,
)
