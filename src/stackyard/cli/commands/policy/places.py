"""Places as the user types and reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.base.errors import UsageError

if TYPE_CHECKING:
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["clean_paths", "shown_place"]


def clean_paths(repository: StackRepository, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths from the top of the repository; the name of a stack means its folder.

    Raises:
        UsageError: One is neither a stack nor a path in the repository.
    """
    found = []
    for one in paths:
        stack = repository.stacks.get(one)
        place = str(stack.folder) if stack is not None else os.path.realpath(one)
        path = os.path.relpath(place, repository.root)
        if path.startswith("..") or not os.path.lexists(place):
            raise UsageError(f"`{one}` is neither a stack nor a path in {repository.root}.")
        found.append(path)
    return tuple(found)


def shown_place(repository: StackRepository, path: str, line: int | None) -> str:
    """Return a place of the tree as the user would type it here."""
    full = Path(repository.tree.top) / path
    from_here = os.path.relpath(full)
    shown = str(full) if from_here.startswith("..") else from_here
    return shown if line is None else f"{shown}:{line}"
