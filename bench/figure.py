"""One measured figure and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A time of ours, the floor measured beside it, and how many floors it may take.

    Attributes:
        name: What was measured.
        measured_s: How long it took.
        floor_name: The least that could do the same, or nearly.
        floor_s: How long that took, in the same run.
        aim_ratio: How many times the floor it may take.
        allowance_s: What it may take on top, whatever the floor.
    """

    name: str
    measured_s: float
    floor_name: str
    floor_s: float
    aim_ratio: float
    allowance_s: float = 0.0

    @property
    def ratio(self) -> float:
        """How many times the floor it took."""
        return self.measured_s / self.floor_s

    @property
    def is_met(self) -> bool:
        """Whether it took no more than the aim and the allowance."""
        return self.measured_s <= self.floor_s * self.aim_ratio + self.allowance_s
