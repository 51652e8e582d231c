"""Which folders of a repository are stacks, by convention or as `stackyard.yaml` says.

A folder below `stacks/` or `tofu/stacks/` with code directly in it is a stack, and so is one below a numbered
folder of `infrastructure/`, which is a layer. Links to folders are never followed: a walk always ends.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stackyard.sources.stacks.globs import compile_glob
from stackyard.sources.stacks.kinds import is_code, is_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "CONVENTIONAL_ROOTS",
    "LAYERED_ROOT",
    "FoundFolder",
    "Layout",
    "find_layout",
    "layer_of",
    "stack_name",
]

CONVENTIONAL_ROOTS = ("stacks", "tofu/stacks")
LAYERED_ROOT = "infrastructure"
_NUMBERED = re.compile(r"([0-9]+)-.+")
_SKIPPED = frozenset(("modules", "node_modules", "__pycache__"))
# Inside a stack these hold code that is only for its tests, or to look at.
_SKIPPED_IN_STACKS = frozenset(("tests", "test", "examples"))


@dataclass(frozen=True, slots=True)
class FoundFolder:
    """A folder with code in it.

    Attributes:
        name: Its path below the folder that holds the stacks.
        path: Its path from the top of the repository.
        files: The names of the files in it.
        inside: The path of the stack that it is inside of, empty for a stack of its own.
        is_link: Whether it is a link to a folder.
    """

    name: str
    path: str
    files: tuple[str, ...]
    inside: str = ""
    is_link: bool = False


@dataclass(slots=True, kw_only=True)
class Layout:
    """What was found.

    Attributes:
        roots: Folders that hold stacks.
        layers: In order.
        folders: Folders with code.
    """

    roots: tuple[str, ...]
    layers: tuple[str, ...]
    folders: list[FoundFolder] = field(default_factory=list)


def find_layout(top: str, roots: Sequence[str] | None, layers: Sequence[str] | None) -> Layout:
    """Find the folders of stacks.

    Args:
        top: The repository.
        roots: Folders that hold stacks, where that is said.
        layers: Layers in order, where that is said.
    """
    chosen = tuple(_existing_roots(top) if roots is None else roots)
    numbered = _numbered_folders(top) if LAYERED_ROOT in chosen and roots is None else []
    layout = Layout(roots=chosen, layers=tuple(numbered if layers is None else layers))
    for root in chosen:
        parts = numbered if root == LAYERED_ROOT and roots is None else [""]
        for part in parts:
            _walk(top, root, part, layout)
    return layout


def _existing_roots(top: str) -> Iterable[str]:
    yield from (root for root in CONVENTIONAL_ROOTS if os.path.isdir(f"{top}/{root}"))
    if _numbered_folders(top):
        yield LAYERED_ROOT


def _numbered_folders(top: str) -> list[str]:
    """Return the layers of `infrastructure`, in the order of their numbers."""
    try:
        names = os.listdir(f"{top}/{LAYERED_ROOT}")
    except OSError:
        return []
    found = [(int(match[1]), name) for name in names if (match := _NUMBERED.fullmatch(name))]
    return [name for _, name in sorted(found) if os.path.isdir(f"{top}/{LAYERED_ROOT}/{name}")]


def stack_name(path: str, roots: Sequence[str]) -> str | None:
    """Return the name that a folder has as a stack, None where it is in none of the folders for them."""
    for root in roots:
        name = path.removeprefix(f"{root}/") if root not in ("", ".") else path
        if name != path or root in ("", "."):
            parts = name.split("/")
            if any(part in _SKIPPED or part.startswith(".") for part in parts):
                return None
            if root == LAYERED_ROOT and not (len(parts) > 1 and _NUMBERED.fullmatch(parts[0])):
                return None
            return name
    return None


def layer_of(name: str, layers: Sequence[str]) -> str:
    """Return the layer of a stack, empty where it is in none."""
    for layer in layers:
        pattern = layer.rstrip("/")
        if name == pattern or name.startswith(f"{pattern}/"):
            return layer
        parts = name.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        if any(compile_glob(pattern).fullmatch(one) for one in above):
            return layer
    return ""


def _walk(top: str, root: str, part: str, layout: Layout) -> None:
    base = "" if root in ("", ".") else root
    start = "/".join(one for one in (base, part) if one)
    pending = [(start, "")]
    while pending:
        path, inside = pending.pop()
        files, folders, links = _list(f"{top}/{path}" if path else top)
        name = path[len(base) + 1 :] if base else path
        if path != start and any(is_code(one) for one in files):
            layout.folders.append(FoundFolder(name, path, tuple(files), inside))
            inside = inside or path
        skipped = _SKIPPED | _SKIPPED_IN_STACKS if inside else _SKIPPED
        prefix = f"{path}/" if path else ""
        pending.extend((f"{prefix}{one}", inside) for one in folders if one not in skipped and one[0] != ".")
        if not inside:
            below = f"{name}/" if name else ""
            for one in links:
                if _holds_code(f"{top}/{prefix}{one}"):
                    layout.folders.append(FoundFolder(f"{below}{one}", f"{prefix}{one}", (), is_link=True))


def _list(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of files, folders and links in a folder; nothing of one that cannot be read."""
    files: list[str] = []
    folders: list[str] = []
    links: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    is_file = is_code(entry.name) or is_values(entry.name)
                    (files if is_file else links).append(entry.name)
                elif entry.is_dir():
                    folders.append(entry.name)
                else:
                    files.append(entry.name)
    except OSError:
        return [], [], []
    return files, folders, links


def _holds_code(folder: str) -> bool:
    try:
        return any(is_code(name) for name in os.listdir(folder))
    except OSError:
        return False
