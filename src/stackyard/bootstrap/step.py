"""A step of a cold boot: look, do, prove.

A run looks first, and does only what is missing. So it can be killed anywhere and run again: it continues
from what it finds, and a second run changes nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["ABSENT", "PRESENT", "Observation", "Presence", "Report", "Step", "absent", "present", "unknown"]

Report = Callable[[str], None]


class Presence(enum.StrEnum):
    """Whether what a step makes is there."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


PRESENT, ABSENT = Presence.PRESENT, Presence.ABSENT


@dataclass(frozen=True, slots=True)
class Observation:
    """What a look has found.

    Attributes:
        presence: Whether the step's result is there as it should be. `UNKNOWN` is never taken for absent.
        reason: Why it is not there, or why nothing can be said; empty if it is there.
    """

    presence: Presence
    reason: str = ""


def present() -> Observation:
    """Say that everything is as it should be."""
    return Observation(Presence.PRESENT)


def absent(reason: str) -> Observation:
    """Say what is missing or different."""
    return Observation(Presence.ABSENT, reason)


def unknown(reason: str) -> Observation:
    """Say why nothing can be said."""
    return Observation(Presence.UNKNOWN, reason)


class Step(Protocol):
    """Something that a cluster needs."""

    @property
    def name(self) -> str:
        """What the step is called in a graph and in views."""

    async def look(self) -> Observation:
        """Return whether the step's result is there. It changes nothing."""

    async def do(self, report: Report) -> None:
        """Make it so. It may be called again after any interruption.

        Args:
            report: Called with what is waited for, and why it is not there yet.

        Raises:
            StackyardError: It cannot be done.
        """

    async def prove(self, report: Report) -> None:
        """Wait until the result can be seen in the world.

        Args:
            report: Called with what is waited for, and why it is not there yet.

        Raises:
            StackyardError: It did not come in time, with the reason.
        """
