"""Where a new stack goes, and where the modules are that it calls."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.errors import InvalidInputError, Location
from stackyard.sources.stacks.kinds import KIND, is_stack_name
from stackyard.sources.stacks.layout import LAYERED_ROOT, stack_name

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.sources.stacks.repository import StackRepository

__all__ = ["NewNameError", "Placement", "StackExistsError", "place_stack"]

_FIRST_ROOT = "tofu/stacks"
_MODULES = "modules"
_NUMBERED = re.compile(r"[0-9]+-.+")


class NewNameError(InvalidInputError):
    """A new stack cannot have this name, or not at this place."""

    code = "E-STACK-NEW-NAME"
    summary = "A new stack cannot have this name"
    default_remedy = (
        "Use names of folders with slashes between, such as `onprem/server_c`: letters, digits, `-`, `_`, "
        "`.` and `+`, and a letter, a digit or `_` first."
    )


class StackExistsError(InvalidInputError):
    """There is a stack of this name, or something else where the new one would go."""

    code = "E-STACK-NEW-EXISTS"
    summary = "There is something where the new stack would go"
    default_remedy = "Choose another name, or remove what is there."


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a new stack goes; paths are from the top of the repository.

    Attributes:
        top: The top of the repository.
        name: The name of the stack.
        path: Its folder.
        modules: The folder of the modules.
    """

    top: Path
    name: str
    path: str
    modules: str

    @property
    def folder(self) -> Path:
        """The folder of the stack."""
        return self.top / self.path

    @property
    def to_modules(self) -> str:
        """The way from the stack to the modules."""
        return os.path.relpath(self.modules, self.path)


def place_stack(repository: StackRepository, wanted: str) -> Placement:
    """Return where a new stack goes.

    Args:
        repository: All stacks there are.
        wanted: The name, or the path of the folder.

    Raises:
        NewNameError: It cannot have this name.
        StackExistsError: There is one, or something else at its place.
    """
    name = wanted.removeprefix(f"{KIND}:").rstrip("/")
    under = next((one for one in repository.roots if name.startswith(f"{one}/")), None)
    if under is None and not repository.roots and name.startswith(f"{_FIRST_ROOT}/"):
        under = _FIRST_ROOT
    if under is not None:
        name = name.removeprefix(f"{under}/")
    if not is_stack_name(name):
        raise NewNameError(f"`{wanted}` cannot be the name of a stack.")
    root = under or _choose_root(repository, name)
    path = name if root in ("", ".") else f"{root}/{name}"
    if stack_name(path, (root,)) != name:
        raise NewNameError(f"A folder {path} is no stack: see which folders are, in the reference of stacks.")
    _require_free(repository, name, path)
    modules = _find_modules(repository, root)
    for one in (path, modules):
        _require_inside(repository, one)
    return Placement(top=repository.root, name=name, path=path, modules=modules)


def _choose_root(repository: StackRepository, name: str) -> str:
    """Return the folder for stacks that a new one goes below."""
    roots = repository.roots
    if not roots:
        return _FIRST_ROOT
    first = name.partition("/")[0]
    is_layer = LAYERED_ROOT in roots and not repository.has_own_roots and _NUMBERED.fullmatch(first)
    if is_layer and "/" in name:
        return LAYERED_ROOT
    usable = [one for one in roots if one != LAYERED_ROOT or repository.has_own_roots]
    if not usable:
        layers = ", ".join(repository.layers)
        raise NewNameError(
            f"`{name}` does not begin with a layer of this repository, which are: {layers}.",
            remedy=f"Begin with the layer: `{repository.layers[-1]}/{name}`.",
        )
    group = name.rpartition("/")[0]
    with_group = [one for one in usable if group and (repository.root / one / group).is_dir()]
    return (with_group or usable)[0]


def _require_free(repository: StackRepository, name: str, path: str) -> None:
    folder = repository.root / path
    where = Location(repository.shown(path))
    known = repository.stacks.get(name)
    if known is not None or name in repository.broken:
        there = path if known is None else known.path
        raise StackExistsError(f"There is a stack `{name}`: {there}.", where=where)
    for stack in repository.stacks.values():
        if stack.path.lower() == path.lower():
            raise StackExistsError(
                f"There is a stack `{stack.name}`: on disks that ignore case, both have the same folder.",
                where=where,
            )
        if path.startswith(f"{stack.path}/") or stack.path.startswith(f"{path}/"):
            inner, outer = (path, stack.path) if path.startswith(f"{stack.path}/") else (stack.path, path)
            raise NewNameError(
                f"The stack {inner} would be inside the stack {outer}.",
                where=where,
                remedy="Choose a name that is neither below nor above another stack.",
            )
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise StackExistsError(f"{folder} is there already.", where=where)
    above = next((one for one in folder.parents if os.path.lexists(one)), repository.root)
    if not above.is_dir():
        raise StackExistsError(f"{above} is there and is no folder.", where=where)


def _require_inside(repository: StackRepository, path: str) -> None:
    """Refuse a folder that a link takes out of the repository."""
    top, real = (os.path.realpath(one) for one in (repository.tree.top, repository.root / path))
    if not real.startswith(f"{top.rstrip('/')}/"):
        raise NewNameError(
            f"{repository.root / path} is outside of the repository: a link leads to {real}.",
            where=Location(repository.shown(path)),
            remedy="Replace the link by a folder: nothing is written outside of the repository.",
        )


def _find_modules(repository: StackRepository, root: str) -> str:
    """Return the folder of modules: beside the folder for stacks, in it, or at the top."""
    parent = os.path.dirname(root)
    beside = f"{parent}/{_MODULES}" if parent else _MODULES
    inside = _MODULES if root in ("", ".") else f"{root}/{_MODULES}"
    candidates = (beside, inside, _MODULES)
    return next((one for one in candidates if (repository.root / one).is_dir()), beside)
