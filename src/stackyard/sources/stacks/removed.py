"""Stacks that were there at the commit compared with, and are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.sources.stacks.layout import CONVENTIONAL_ROOTS, LAYERED_ROOT, stack_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["find_removed"]


def find_removed(
    repository: StackRepository,
    old: Mapping[str, Mapping[str, Any] | None],
    gone: Iterable[str],
    prefix: str,
) -> list[tuple[str, str]]:
    """Return names and folders of stacks whose code is gone.

    Args:
        repository: The stacks that are there.
        old: What stackyard.yaml said before, where it said something else.
        gone: Paths of files of code that are gone.
        prefix: The repository from the top of the tree.
    """
    roots = list(dict.fromkeys([*repository.roots, *_old_roots(repository, old)]))
    there = {stack.path for stack in repository.stacks.values()} | set(repository.files)
    folders = sorted(
        {path.rpartition("/")[0].removeprefix(prefix) for path in gone if path.startswith(prefix)}
    )
    found: dict[str, str] = {}
    for folder in folders:
        name = stack_name(folder, roots)
        if name is None or name in repository.stacks or name in repository.broken or folder in there:
            continue
        if not any(folder.startswith(f"{other}/") for other in (*there, *found.values())):
            found[name] = folder
    return list(found.items())


def _old_roots(repository: StackRepository, old: Mapping[str, Mapping[str, Any] | None]) -> list[str]:
    """Return the folders that held stacks before."""
    conventional = [*CONVENTIONAL_ROOTS, LAYERED_ROOT]
    if not old:
        return [] if repository.has_own_roots else conventional
    found: list[str] = []
    for said in old.values():
        roots = None if said is None else said.get("roots")
        found += conventional if roots is None else roots
    return found
