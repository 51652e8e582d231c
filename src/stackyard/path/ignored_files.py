"""What git must not track beside code: states, plans, and what engines keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from stackyard.base import files
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["ENGINE_FILES", "IgnoredLine", "add_ignored", "add_lines", "list_missing", "read_ignored"]

# A line, and others that say the same.
IgnoredLine: TypeAlias = "tuple[str, Sequence[str]]"
ENGINE_FILES: tuple[IgnoredLine, ...] = (
    (".stackyard/", (".stackyard", "/.stackyard/", "/.stackyard")),
    (".terraform/", (".terraform", "**/.terraform/*", "**/.terraform/", "**/.terraform")),
    ("*.tfstate*", ("*.tfstate.*",)),
    ("*.tfplan", ()),
    ("tfplan", ("*tfplan*", "*tfplan")),
    ("crash*.log", ("crash.log", "crash.*.log")),
)
_HEADING = "# OpenTofu: states, plans and what it downloads."


def list_missing(text: str, wanted: Iterable[IgnoredLine] = ENGINE_FILES) -> list[str]:
    """Return the lines that a `.gitignore` lacks."""
    lines = {line.strip() for line in text.splitlines()}
    return [one for one, others in wanted if one not in lines and lines.isdisjoint(others)]


def add_lines(text: str, missing: Sequence[str]) -> str:
    """Return a `.gitignore` with some more lines at its end."""
    if not missing:
        return text
    before = text if not text or text.endswith("\n") else f"{text}\n"
    gap = "\n" if before.strip() else ""
    return f"{before}{gap}" + "\n".join([_HEADING, *missing, ""])


def read_ignored(top: Path) -> str:
    """Return the `.gitignore` of a repository; empty where there is none.

    Raises:
        FileError: It cannot be read.
    """
    path = top / ".gitignore"
    try:
        return path.read_text(errors="surrogateescape") if path.exists() else ""
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err


def add_ignored(top: Path) -> list[str]:
    """Add what is missing to the `.gitignore` of a repository; return the lines.

    One that is a link stays: git does not read it, and its file may be outside of the repository.

    Raises:
        FileError: It cannot be read or written.
    """
    path = top / ".gitignore"
    if path.is_symlink():
        return []
    text = read_ignored(top)
    missing = list_missing(text)
    if missing:
        data = add_lines(text, missing).encode(errors="surrogateescape")
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        files.replace_file(path, data, mode=mode)
    return missing
