"""M11: a stack reads from another one only where it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base.errors import Location
from stackyard.policy.model import Finding, Rule
from stackyard.sources.stacks.isolation import UNDECLARED_READ
from stackyard.sources.stacks.reads import read_stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.policy.context import PolicyContext
    from stackyard.sources.stacks.model import Stack

__all__ = ["RULE"]

_REMEDY = (
    "Add the other stack to `after` in stack.yaml, or move the file to a place that belongs to no stack."
)
# What stack.yaml itself names is declared there.
_DECLARED = ("watch", "var_files", "secrets", "backend_config", "domains")


def _check(context: PolicyContext) -> Iterator[Finding]:
    for one in context.isolation.found:
        if one.kind is UNDECLARED_READ and one.where is not None:
            yield Finding(
                rule="M11", detail=one.detail, where=one.where, remedy=one.kind.remedy, also=one.also
            )
    prefix = context.repository.prefix
    owners = {f"{prefix}{stack.path}": stack for stack in context.repository.stacks.values()}
    for stack in context.repository.stacks.values():
        yield from _check_files(context, stack, owners)


def _check_files(context: PolicyContext, stack: Stack, owners: dict[str, Stack]) -> Iterator[Finding]:
    reads = read_stack(context.repository, stack)
    declared = {one.stack for one in stack.settings.after} | {stack.name}
    seen: set[tuple[str, str]] = set()
    for paths in (reads.folders, reads.paths, reads.globs):
        for path, (_, where, how) in paths.items():
            other = _find_owner(path, owners)
            if (
                other is None
                or how in _DECLARED
                or other.name in declared
                or stack.name in other.settings.before
            ):
                continue
            if (where, other.name) in seen:
                continue
            seen.add((where, other.name))
            file, _, line = where.rpartition(":")
            place = Location(file, int(line)) if file and line.isdigit() else Location(where)
            detail = (
                f"The stack `{stack.name}` reads `{path}` of the stack `{other.name}` ({how}), and does not "
                "name it in `after`."
            )
            yield Finding(rule="M11", detail=detail, where=place, remedy=_REMEDY)


def _find_owner(path: str, owners: dict[str, Stack]) -> Stack | None:
    """Return the stack that a path is in."""
    place = path.rstrip("/")
    while place:
        if place in owners:
            return owners[place]
        place = place.rpartition("/")[0]
    return None


RULE = Rule(
    id="M11",
    title="A stack reads from another stack only where `after` says so",
    why="A hidden dependency is applied in the wrong order, and breaks when the other stack changes.",
    check=_check,
)
