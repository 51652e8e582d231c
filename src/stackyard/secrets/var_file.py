"""Values of input variables in clear, as they are passed to the engine: never a file, never an argument."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PrivateVarFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateVarFile:
    """Values of input variables that are passed on without being a file or an argument.

    Attributes:
        path: The file that the user knows, for messages.
        content: The values in HCL's native syntax, whatever the form of that file.
        lines: Where the content was generated: for each of its lines, that of the user's file.
    """

    path: Path
    content: bytes = field(repr=False)
    lines: tuple[int, ...] = ()

    def line(self, number: int | None) -> int | None:
        """Return the line of the user's file that a line of the content comes from."""
        if not self.lines or number is None:
            return number
        return self.lines[min(max(number, 1), len(self.lines)) - 1]
