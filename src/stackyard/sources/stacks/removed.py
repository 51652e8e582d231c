"""Stacks that were there at the commit compared with, and are gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stackyard.sources.stacks.layout import CONVENTIONAL_ROOTS, LAYERED_ROOT, stack_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stackyard.sources.stacks.changes import Changes
    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["find_removed"]


async def find_removed(
    repository: StackRepository, changes: Changes, gone: Iterable[str], prefix: str
) -> list[tuple[str, str]]:
    """Return names and folders of stacks whose code is gone.

    Args:
        repository: The stacks that are there.
        changes: What differs.
        gone: Paths of files of code that are gone.
        prefix: The repository from the top of the tree.
    """
    roots = list(dict.fromkeys([*repository.roots, *await _old_roots(repository, changes, prefix)]))
    there = {stack.path for stack in repository.stacks.values()}
    folders = sorted(
        {path.rpartition("/")[0].removeprefix(prefix) for path in gone if path.startswith(prefix)}
    )
    found: dict[str, str] = {}
    for folder in folders:
        name = stack_name(folder, roots)
        is_inside = any(_is_below(folder, other) for other in (*there, *found.values()))
        if name is None or folder in there or is_inside or name in repository.broken:
            continue
        found[name] = folder
    return [
        (name, path)
        for name, path in found.items()
        # A folder that still has code is one that `stackyard.yaml` no longer counts as a stack.
        if name not in repository.stacks
    ]


def _is_below(folder: str, other: str) -> bool:
    return folder.startswith(f"{other}/")


async def _old_roots(repository: StackRepository, changes: Changes, prefix: str) -> list[str]:
    """Return the folders that held stacks at the commit compared with."""
    conventional = [*CONVENTIONAL_ROOTS, LAYERED_ROOT]
    file = f"{prefix}stackyard.yaml"
    if not (changes.base and file in changes.files):
        return [] if (repository.root / "stackyard.yaml").is_file() and repository.roots else conventional
    from stackyard.sources.stacks.old_settings import read_old_repository  # lazy: only where the file changed

    said = await read_old_repository(Path(repository.tree.top), changes.base, file)
    return conventional if said is None or said.get("roots") is None else list(said["roots"])
