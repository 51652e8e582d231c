"""What was found out about files, kept between runs in `.stackyard/cache`; never needed, and never believed.

Everything in it is kept under the number of the content that it was made of, so that it is either right or
not found. A file that is damaged, of another version, or part of the repository counts as empty.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import stackyard
from stackyard.base import directories
from stackyard.base.errors import StackyardError

if TYPE_CHECKING:
    from pathlib import Path

    from stackyard.sources.stacks.working_tree import WorkingTree

__all__ = ["StackCache", "open_cache"]

_FORMAT = f"5 {stackyard.__version__}"
# Larger ones are made again: reading them would cost more than they save.
_LARGEST_BYTES = 64 * 2**20
_MOST_ENTRIES = 50_000
_SECTIONS = ("settings", "code", "reads", "stats", "diffs", "policy")


@dataclass(slots=True)
class _Section:
    """A part of the cache, in a file of its own."""

    path: Path
    is_used: bool
    rows: dict[str, Any] | None = None
    used: set[str] = field(default_factory=set)
    is_changed: bool = False

    def load(self) -> dict[str, Any]:
        if self.rows is None:
            self.rows = _read(self.path) if self.is_used else {}
        return self.rows

    def get(self, key: str) -> Any:
        found = self.load().get(key)
        if found is not None:
            self.used.add(key)
        return found

    def put(self, key: str, value: Any) -> None:
        self.load()[key] = value
        self.used.add(key)
        self.is_changed = True

    def save(self) -> None:
        if not self.is_changed or not self.is_used or self.rows is None:
            return
        import orjson  # lazy: as above

        from stackyard.base import files  # lazy: only when something is new

        rows = self.rows
        if len(rows) > _MOST_ENTRIES:
            rows = {key: value for key, value in rows.items() if key in self.used}
        with contextlib.suppress(StackyardError, OSError, TypeError, ValueError):
            data = orjson.dumps({"format": _FORMAT, "rows": rows})
            directories.ensure_private(self.path.parent)
            files.replace_file(self.path, data)
        self.is_changed = False


@dataclass(slots=True, kw_only=True)
class StackCache:
    """The cache of a repository.

    Attributes:
        settings: What files of settings say.
        code: What files of code say.
        reads: What stacks read.
        stats: What `stat` said of files.
        diffs: What git said of commits.
        policy: What files say to the rules for modules and stacks.
    """

    settings: _Section
    code: _Section
    reads: _Section
    stats: _Section
    diffs: _Section
    policy: _Section

    def save(self) -> None:
        """Write what is new; where that cannot be, the next run finds it out again."""
        for section in (self.settings, self.code, self.reads, self.stats, self.diffs, self.policy):
            section.save()


def open_cache(root: Path, tree: WorkingTree) -> StackCache:
    """Return the cache of a repository."""
    folder = root / directories.PROJECT_FOLDER / "cache"
    prefix = os.path.relpath(folder, tree.top)
    # One that somebody committed says what they want it to.
    files = {} if tree.index is None else tree.index.files
    tracked = os.path.dirname(prefix) in files
    tracked = tracked or any(f"{prefix}/stacks-{name}.json" in files for name in _SECTIONS)
    is_used = not tracked and not folder.is_symlink()
    sections = {name: _Section(folder / f"stacks-{name}.json", is_used) for name in _SECTIONS}
    return StackCache(**sections)


def _read(path: Path) -> dict[str, Any]:
    import orjson  # lazy: only where there are stacks

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if os.fstat(descriptor).st_size > _LARGEST_BYTES:
                return {}
            document = orjson.loads(stream.read())
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        return {}
    rows = document.get("rows")
    return rows if isinstance(rows, dict) else {}
