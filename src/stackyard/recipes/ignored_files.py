"""What git must not track of stacks: states, plans, and what engines keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["add_ignored", "list_missing"]

# Each with other lines that say the same.
_WANTED = (
    (".stackyard/", (".stackyard", "/.stackyard/", "/.stackyard")),
    (".terraform/", (".terraform", "**/.terraform/*", "**/.terraform/", "**/.terraform")),
    ("*.tfstate*", ("*.tfstate.*",)),
    ("*.tfplan", ()),
    ("tfplan", ("*tfplan*", "*tfplan")),
    ("crash*.log", ("crash.log", "crash.*.log")),
)
_HEADING = "# OpenTofu: states, plans and what it downloads."


def list_missing(text: str) -> list[str]:
    """Return the lines that a `.gitignore` lacks."""
    lines = {line.strip() for line in text.splitlines()}
    return [one for one, others in _WANTED if one not in lines and lines.isdisjoint(others)]


def add_ignored(top: Path) -> list[str]:
    """Add what is missing to the `.gitignore` of a repository; return the lines.

    One that is a link stays: git does not read it, and its file may be outside of the repository.

    Raises:
        FileError: It cannot be read or written.
    """
    path = top / ".gitignore"
    if path.is_symlink():
        return []
    try:
        text = path.read_text(errors="surrogateescape") if path.exists() else ""
    except OSError as err:
        raise FileError.from_os_error(err, "read", path) from err
    missing = list_missing(text)
    if missing:
        before = text if not text or text.endswith("\n") else f"{text}\n"
        gap = "\n" if before.strip() else ""
        added = "\n".join([_HEADING, *missing, ""])
        data = f"{before}{gap}{added}".encode(errors="surrogateescape")
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        files.replace_file(path, data, mode=mode)
    return missing
