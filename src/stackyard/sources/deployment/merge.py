"""Joining two changes of one object: what both started from, ours, and what is there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stackyard.sources.deployment.text import same

__all__ = ["Conflict", "MergeResult", "merge"]

_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One value that both sides changed, each to something else; None where a side has none."""

    path: tuple[str, ...]
    base: Any
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return (
            f"{'.'.join(self.path)}: it was {self.base!r}, you have {self.ours!r}, they have {self.theirs!r}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """Both changes in one object; where they conflict, theirs is kept."""

    data: dict[str, Any]
    conflicts: tuple[Conflict, ...]


def merge(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> MergeResult:
    """Join two changes.

    Args:
        base: What both started from.
        ours: Our change of it.
        theirs: What is there now.
    """
    conflicts: list[Conflict] = []
    data = _merge(base, ours, theirs, (), conflicts)
    return MergeResult(data=data if isinstance(data, dict) else {}, conflicts=tuple(conflicts))


def _merge(base: Any, ours: Any, theirs: Any, path: tuple[str, ...], conflicts: list[Conflict]) -> Any:
    if same(ours, theirs) or same(ours, base):
        return theirs
    if same(theirs, base):
        return ours
    if isinstance(ours, dict) and isinstance(theirs, dict):
        below = base if isinstance(base, dict) else {}
        found: dict[str, Any] = {}
        for key in dict.fromkeys([*theirs, *ours]):
            was, mine, other = (side.get(key, _ABSENT) for side in (below, ours, theirs))
            value = _merge(was, mine, other, (*path, key), conflicts)
            if value is not _ABSENT:
                found[key] = value
        return found
    was, mine, other = (None if side is _ABSENT else side for side in (base, ours, theirs))
    conflicts.append(Conflict(path=path, base=was, ours=mine, theirs=other))
    return theirs
