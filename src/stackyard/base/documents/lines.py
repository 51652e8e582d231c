"""Lines and columns of a text, both from one, as editors count them."""

from __future__ import annotations

import bisect
import re

__all__ = ["LineIndex"]


class LineIndex:
    """Finds the lines of a text; it is read once, however often a line is asked for."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line_of(self, index: int) -> int:
        """Return the line of the character at an index."""
        return bisect.bisect_right(self._starts, index)

    def find(self, index: int) -> tuple[int, int]:
        """Return the line and the column of the character at an index."""
        line = self.line_of(index)
        return line, index - self._starts[line - 1] + 1
