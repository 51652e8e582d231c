"""The modules that a new stack calls: copied into the repository, unless they are there."""

from __future__ import annotations

import enum
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.recipes.catalogue import read_module
from stackyard.recipes.hcl_edit import Literal, find_sources, replace_literals
from stackyard.sources.stacks.kinds import is_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["ModuleStatus", "NeededModule", "list_modules", "point_to_modules"]

# As skeletons name them: for a stack in a group, with the folder of modules beside that of the stacks.
_SHIPPED = re.compile(r"(?:\.\./)+modules/(?P<name>[\w-]+)")
_BESIDE = re.compile(r"\.\./(?P<name>[\w-]+)")


class ModuleStatus(enum.StrEnum):
    """What becomes of a module that a new stack calls."""

    ADDED = "added"
    KEPT = "kept"
    DIFFERS = "differs"  # it is there, and is not the one of this version of stackyard


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededModule:
    """A module that a new stack calls.

    Attributes:
        name: Its name.
        status: What becomes of it.
        files: The files of the one that is part of stackyard.
        changed: The files that differ from those, where it is there already.
    """

    name: str
    status: ModuleStatus
    files: Mapping[str, bytes] = field(repr=False)
    changed: tuple[str, ...] = ()


def list_modules(skeleton: Mapping[str, bytes], folder: Path) -> list[NeededModule]:
    """Return the modules that a skeleton calls, and those that these call.

    Args:
        skeleton: Its files.
        folder: Where modules are.
    """
    waiting = sorted(_list_called(skeleton, _SHIPPED))
    found: dict[str, NeededModule] = {}
    while waiting:
        name = waiting.pop(0)
        files = read_module(name)
        if name in found or files is None:
            continue
        found[name] = _compare(name, files, folder / name)
        waiting += sorted(_list_called(files, _BESIDE))
    return [found[name] for name in sorted(found)]


def _list_called(files: Mapping[str, bytes], pattern: re.Pattern[str]) -> set[str]:
    sources = (one for name, data in files.items() if _is_hcl(name) for one in find_sources(data))
    return {matched["name"] for one in sources if (matched := pattern.fullmatch(one.text))}


def _is_hcl(name: str) -> bool:
    return is_code(name.rpartition("/")[2]) and not name.endswith(".json")


def _compare(name: str, files: Mapping[str, bytes], folder: Path) -> NeededModule:
    if not os.path.lexists(folder):
        return NeededModule(name=name, status=ModuleStatus.ADDED, files=files)
    changed = tuple(one for one, data in files.items() if _read(folder / one) != data)
    status = ModuleStatus.DIFFERS if changed else ModuleStatus.KEPT
    return NeededModule(name=name, status=status, files=files, changed=changed)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def point_to_modules(data: bytes, way: str) -> bytes:
    """Return code of a skeleton that calls modules in the place where they are.

    Args:
        data: The code.
        way: The way from the stack to the folder of modules.
    """
    return replace_literals(data, _new_sources(find_sources(data), way))


def _new_sources(sources: Iterable[Literal], way: str) -> Iterable[tuple[Literal, str]]:
    for one in sources:
        if matched := _SHIPPED.fullmatch(one.text):
            yield one, f"{way}/{matched['name']}"
