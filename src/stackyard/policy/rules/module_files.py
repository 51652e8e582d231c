"""M4: each module has main, variables, outputs and a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.policy.readme import is_readme

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext

__all__ = ["CODE_PARTS", "RULE", "missing_parts"]

CODE_PARTS = ("main", "variables", "outputs")
_SUFFIXES = (".tf", ".tofu", ".tf.json", ".tofu.json")
_PURPOSES = {
    "main": "its resources",
    "variables": "its input variables",
    "outputs": "its outputs",
}


def _check(context: PolicyContext) -> Iterator[Finding]:
    for folder in context.modules.values():
        for part in missing_parts(folder.names):
            detail = f"The module `{folder.path}` has no {part}."
            stem = part.partition(".")[0]
            remedy = (
                "Write one, or let `stackyard policy fix` write one with the tables of inputs and outputs."
                if stem == "README"
                else f"Add {part} with {_PURPOSES[stem]}."
            )
            yield Finding(rule="M4", detail=detail, where=Location(folder.path), remedy=remedy)


def missing_parts(names: tuple[str, ...]) -> list[str]:
    """Return the files that a module with these files lacks, by their usual names."""
    present = set(names)
    missing = [
        f"{part}.tf" for part in CODE_PARTS if present.isdisjoint(f"{part}{suffix}" for suffix in _SUFFIXES)
    ]
    return missing if any(is_readme(name) for name in names) else [*missing, "README.md"]


RULE = Rule(
    id="M4",
    title="Each module has main, variables, outputs and a README",
    why="Who opens a module finds what it makes, takes and gives in the same place as in every other one.",
    check=_check,
)
