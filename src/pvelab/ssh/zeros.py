"""The bytes of a file that only has a size."""

from __future__ import annotations

import io
import os
from typing import Any

__all__ = ["Zeros"]


class Zeros(io.RawIOBase):
    """So many zeros.

    Args:
        size: How many.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._place = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it has places."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        view = memoryview(buffer).cast("B")
        count = min(max(0, self._size - self._place), len(view))
        view[:count] = bytes(count)
        self._place += count
        return count
