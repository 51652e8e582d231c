"""Growing pauses between attempts, for what tells no one when it is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to pause before each further attempt: short at first, then longer and longer.

    Attributes:
        first_s: The first pause.
        longest_s: The longest pause.
        growth: How many times longer each pause is than the one before.
    """

    first_s: float
    longest_s: float
    growth: float = 2.0

    def __iter__(self) -> Iterator[float]:
        """Yield pauses without end."""
        pause_s = self.first_s
        while True:
            yield pause_s
            pause_s = min(pause_s * self.growth, self.longest_s)
