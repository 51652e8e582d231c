"""Changing the backend that the code of a stack names; nothing else in its files changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.base import files
from stackyard.base.documents.hcltree import parse_tree
from stackyard.base.errors import InvalidInputError, Location
from stackyard.base.files import read_text
from stackyard.sources.stacks.hcl import list_blocks

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BackendEditError", "write_backend"]

_NEW_FILE = "backend.tf"


class BackendEditError(InvalidInputError):
    """The backend of a stack is written in a way that is not changed automatically."""

    code = "E-STACK-BACKEND-EDIT"
    summary = "The backend cannot be changed automatically"
    default_remedy = "Change the block by hand, then repeat the command."


def write_backend(folder: Path, block: str) -> Path:
    """Make a stack have one backend block, or none.

    Args:
        folder: The folder of the stack.
        block: The new block, `backend "http" {}`; empty for none.

    Returns:
        The file that was changed.

    Raises:
        BackendEditError: The present block is in JSON syntax, or there are several.
        FileError: A file cannot be read or written.
    """
    found = [
        (path, span)
        for path in sorted((*folder.glob("*.tf"), *folder.glob("*.tofu")))
        for span in _find_blocks(read_text(path).encode())
    ]
    if len(found) > 1:
        path = found[1][0]
        raise BackendEditError(f"{folder} has more than one backend block.", where=Location(str(path)))
    for path in sorted((*folder.glob("*.tf.json"), *folder.glob("*.tofu.json"))):
        if '"backend"' in read_text(path):
            raise BackendEditError("The backend is written in JSON.", where=Location(str(path)))
    if found:
        path, (start, end) = found[0]
        data = read_text(path).encode()
        changed = data[:start] + block.encode() + data[end:]
        files.replace_file(path, _drop_empty(changed) if not block else changed)
        return path
    path = folder / _NEW_FILE
    if block:
        before = read_text(path) if path.exists() else ""
        separator = "" if not before or before.endswith("\n") else "\n"
        files.replace_file(path, f"{before}{separator}terraform {{\n  {block}\n}}\n".encode())
    return path


def _find_blocks(data: bytes) -> list[tuple[int, int]]:
    """Return from where to where each backend or cloud block goes."""
    found = []
    for kind, _, block in list_blocks(parse_tree(data)):
        if kind == "terraform":
            found += [
                (inner.start_byte, inner.end_byte)
                for word, _, inner in list_blocks(block)
                if word in ("backend", "cloud")
            ]
    return found


def _drop_empty(data: bytes) -> bytes:
    """Return a file without a `terraform` block in which nothing is left."""
    import re  # lazy: only where a backend is removed

    return re.sub(rb"(?m)^terraform\s*\{\s*\}\n?", b"", data)
