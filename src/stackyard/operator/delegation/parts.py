"""One file of the archive: where it goes, and where it comes from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

__all__ = ["Part"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of the archive.

    Attributes:
        path: Where it goes.
        source: The file that it is a copy of, or what it holds.
        is_program: Whether it is to be started.
    """

    path: PurePosixPath
    source: Path | bytes
    is_program: bool = False

    @property
    def mode(self) -> int:
        """Its permissions, whatever those of the source are."""
        return 0o755 if self.is_program else 0o644

    def read(self) -> bytes:
        """Return what it holds.

        Raises:
            OSError: The source cannot be read.
        """
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()

    def stamp(self) -> str:
        """Return a line that changes whenever the part does, without reading it.

        Raises:
            OSError: The source is not there.
        """
        if isinstance(self.source, bytes):
            return f"{self.path} {self.mode:o} {self.source.hex()}"
        found = os.stat(self.source)
        seen = f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"
        return f"{self.path} {self.mode:o} {self.source} {seen}"
