"""Remembering between runs what a program said of its version.

Starting an engine only to hear its version costs every run tens of milliseconds. An answer is kept for one
exact file: a program that is replaced or touched in any way is asked again. Small files are never remembered,
because the shims of version managers (asdf, mise, tenv) are small and answer differently from place to place.
Losing the memory loses time and nothing else, so no failure here is ever reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING

from stackyard.base import directories, files
from stackyard.base.documents.jsontext import parse_json
from stackyard.base.errors import FileError
from stackyard.engine.tools.catalogue import VersionOutput

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["recall", "remember"]

# OpenTofu and Terraform are over 60 MB; the shims of version managers are well under 30.
_SMALLEST_REMEMBERED_BYTES = 32 * 1024 * 1024


def recall(path: Path) -> VersionOutput | None:
    """Return what this very file answered before, if that is known."""
    identity = _identity(path)
    if identity is None:
        return None
    try:
        document = parse_json(_note(path).read_bytes())
    except (OSError, ValueError, FileError):
        return None
    match document:
        case {"identity": known, "product": str(product), "version": str(version)} if known == identity:
            return VersionOutput(product=product, version=version)
        case _:
            return None


def remember(path: Path, said: VersionOutput) -> None:
    """Keep what a file answered."""
    identity = _identity(path)
    if identity is None:
        return
    document = {"identity": identity, "product": said.product, "version": said.version}
    with contextlib.suppress(FileError):
        note = _note(path)
        directories.ensure_private(note.parent)
        files.replace_file(note, json.dumps(document).encode())


def _identity(path: Path) -> list[str | int] | None:
    """Return what distinguishes this file from any other one, and from itself before a change."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if status.st_size < _SMALLEST_REMEMBERED_BYTES:
        return None
    facts = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return [str(path), *facts]


def _note(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return directories.cache_folder() / "probes" / f"{name}.json"
