"""Which folders of a repository are modules: those with code below a folder `modules`.

Links to folders are never followed: a walk always ends, and a module is judged where it really is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stackyard.sources.stacks.kinds import is_code

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MODULES", "find_modules"]

MODULES = "modules"
_SKIPPED = frozenset(("node_modules", "__pycache__", "venv"))
# Inside a module these hold code that is only for its tests, or to look at.
_SKIPPED_IN_MODULES = frozenset(("tests", "test", "examples"))


def find_modules(root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return each module by its path from the root, with the names of the files in it."""
    pending = [("", False)]
    while pending:
        path, is_inside = pending.pop()
        files, folders = _list(f"{root}/{path}" if path else root)
        if is_inside and any(is_code(name) for name in files):
            yield path, tuple(files)
        skipped = _SKIPPED | _SKIPPED_IN_MODULES if is_inside else _SKIPPED
        prefix = f"{path}/" if path else ""
        pending.extend(
            (f"{prefix}{name}", is_inside or name == MODULES)
            for name in folders
            if name[0] != "." and name not in skipped
        )


def _list(folder: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
    except OSError:
        return [], []
    return files, folders
