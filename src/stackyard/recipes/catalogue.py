"""The skeletons of stacks and the modules that are part of stackyard."""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

__all__ = ["UnknownRecipeError", "list_recipes", "read_module", "read_recipe"]

_LEFT_OUT = frozenset(("__pycache__", ".terraform"))
# A wheel leaves out files that git would not list; these get their name when they are written.
_RENAMED = {"gitignore": ".gitignore"}


class UnknownRecipeError(InvalidInputError):
    """A new stack is to be made from something that is neither a recipe nor a stack."""

    code = "E-STACK-NEW-FROM"
    summary = "There is nothing of that name to make a stack from"
    default_remedy = "Name a recipe or an existing stack: `stackyard stack list` shows all stacks."


def list_recipes() -> tuple[str, ...]:
    """Return the names of the recipes."""
    return tuple(sorted(one.name for one in _folder("stacks").iterdir() if one.is_dir()))


def read_recipe(name: str) -> dict[str, bytes]:
    """Return the files of a recipe by their paths.

    Raises:
        UnknownRecipeError: There is none of that name.
    """
    if name not in list_recipes():
        raise UnknownRecipeError(
            f"There is no recipe `{name}`; the recipes are: {', '.join(list_recipes())}."
        )
    return dict(_read(_folder("stacks") / name, ""))


def read_module(name: str) -> dict[str, bytes] | None:
    """Return the files of a module by their paths, None where there is no such module."""
    folder = _folder("modules") / name
    return dict(_read(folder, "")) if folder.is_dir() else None


def _folder(name: str) -> Traversable:
    return importlib.resources.files("stackyard.recipes") / name


def _read(folder: Traversable, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir():
            yield from _read(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{_RENAMED.get(entry.name, entry.name)}", entry.read_bytes()
