"""Checksums of files."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["hash_of"]


async def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, and nothing for one that is not there."""
    return await asyncio.to_thread(_hash, path)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
