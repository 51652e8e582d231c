"""Why a repository is not served, known again as long as the repository is the same.

Secrets in the history depend on where its refs lead, on where the history ends, and at most on the rules of
the working tree. Damage depends on the files that hold the objects as well: anyone who restores one of them
changes no ref.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from stackyard.clients.git.run import GitError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stackyard.clients.git.source import GitSource

__all__ = ["describe_damage", "object_files_state", "refs_state"]

# How git and the readers here say that an object is missing or cannot be read. Anything else that goes wrong,
# such as a full disk or a lack of memory, says nothing about the repository and is not remembered.
_DAMAGE = re.compile(
    r"object [0-9a-f]{40,64} (?:is missing|cannot be read)|object \S+ \(stored in .+\) is corrupt|"
    r"missing (?:blob|tree|commit|object) |unable to (?:read|unpack|find) (?:\w+ )?[0-9a-f]{40,64}|"
    r"Could not read [0-9a-f]{40,64}|bad (?:object|tree object|packed object) |Failed to traverse|"
    r"is not what its number says|not a tree object|packfile \S+ (?:does not match index|is far too short)"
)
_SHORTAGE = re.compile(r"No space left|Too many open files|[Cc]annot allocate|[Oo]ut of memory|mmap failed")


def refs_state(refs: Mapping[str, str], history_ends: str) -> str:
    """Return what names the commits that a repository publishes."""
    rows = [*(f"{name} {number}" for name, number in sorted(refs.items())), history_ends]
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()


def object_files_state(source: GitSource, state: str) -> str:
    """Return what differs from `state` on whenever a file of the objects comes, goes or is written.

    Raises:
        GitError: The objects cannot be listed.
    """
    digest = hashlib.sha256(state.encode())
    try:
        for folder in [source.objects, *sorted(_folders(source.objects))]:
            for row in sorted(_rows(folder)):
                digest.update(os.fsencode(row))
    except OSError as err:
        raise GitError(f"The objects of {source.root} cannot be listed: {err.strerror}.") from err
    return digest.hexdigest()


def describe_damage(err: GitError, source: GitSource, copy: Path) -> str:
    """Return what of a repository cannot be read, nothing where an error is about something else."""
    if not _DAMAGE.search(err.detail) or _SHORTAGE.search(err.detail):
        return ""
    # The copy is gone at the next start.
    told = err.detail.replace(str(copy), str(source.common_dir))
    return told.encode("utf-8", "replace").decode()


def _folders(above: Path) -> list[Path]:
    with os.scandir(above) as entries:
        return [above / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _rows(folder: Path) -> list[str]:
    rows = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                rows.append(
                    f"{folder.name}/{entry.name} {found.st_size} {found.st_mtime_ns} {found.st_ino}\n"
                )
    return rows
