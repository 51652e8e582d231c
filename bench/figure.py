"""One measured figure and what it is held against."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Figure", "MemoryFigure"]

_MIB = 2**20


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
        note: The same in other words, where these are asked for: how many a second.
    """

    name: str
    measured_s: float
    floor_name: str
    floor_s: float
    aim_ratio: float
    allowance_s: float = 0.0
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times the floor it took."""
        return self.measured_s / self.floor_s

    @property
    def is_met(self) -> bool:
        """Whether it took no more than the aim and the allowance."""
        return self.measured_s <= self.floor_s * self.aim_ratio + self.allowance_s

    def __str__(self) -> str:
        allowance = f" + {self.allowance_s * 1000:.0f} ms" if self.allowance_s else ""
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.name}: {_time(self.measured_s)}{note}, {self.ratio:.2f} x {self.floor_name}"
            f" ({_time(self.floor_s)}); aim {self.aim_ratio:g} x{allowance}: {_verdict(self.is_met)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFigure:
    """Memory of ours, that of a floor, and how many floors it may take."""

    name: str
    measured_bytes: int
    floor_name: str
    floor_bytes: int
    aim_ratio: float

    @property
    def is_met(self) -> bool:
        """Whether it took no more than the aim."""
        return self.measured_bytes <= self.floor_bytes * self.aim_ratio

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.measured_bytes / _MIB:.0f} MiB,"
            f" {self.measured_bytes / self.floor_bytes:.2f} x {self.floor_name}"
            f" ({self.floor_bytes / _MIB:.0f} MiB); aim {self.aim_ratio:g} x: {_verdict(self.is_met)}"
        )


def _time(seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if milliseconds >= 10 else f"{milliseconds:.2f} ms"


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"
