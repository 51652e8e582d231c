"""M5: each variable has a description and a type, and `any` only with a reason."""

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
            for name, one in said.variables.items():
                if one.description is None:
                    detail = f"The variable `{name}` has no description."
                    yield _finding(detail, path, one.line, "Say in `description` what it is for.")
                if one.type is None:
                    detail = f"The variable `{name}` has no type."
                    yield _finding(detail, path, one.line, "Add `type`.")
                elif one.has_any and not one.any_reason:
                    detail = (
                        f"The type of the variable `{name}` is `any`, or holds it, and no reason is given."
                    )
                    remedy = (
                        "Write the type out, or give the reason in a comment at the type: `# any: reason`."
                    )
                    yield _finding(detail, path, one.type_line, remedy)


def _finding(detail: str, path: str, line: int, remedy: str) -> Finding:
    return Finding(rule="M5", detail=detail, where=Location(path, line), remedy=remedy)


RULE = Rule(
    id="M5",
    title="Each variable has a description and a type, `any` only with a reason",
    why="OpenTofu checks values only against a type; with `any`, a misspelled key is silently ignored.",
    check=_check,
)
