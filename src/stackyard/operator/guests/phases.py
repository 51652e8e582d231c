"""Phases as they pass: timed, told, and ended by the first one that fails."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING

from stackyard.base import events
from stackyard.base.errors import StackyardError
from stackyard.operator.outcome import Phase, PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stackyard.base.redaction import Redactor

__all__ = ["GuestConfigError", "PhaseFailed", "PhaseNote", "Phases", "last_lines"]

_QUOTED_LINES = 20
_LONGEST_LINE = 1_000


class GuestConfigError(StackyardError):
    """A guest is up, and could not be configured as its spec says."""

    code = "E-GUEST-CONFIG"
    summary = "A guest could not be configured"
    default_remedy = "Correct what the output names, and run the command again: what is already so stays."


class PhaseFailed(Exception):  # noqa: N818 -- not an error: the phase has it, and the rest is not done
    """A phase has failed, and has been recorded."""


class PhaseNote:
    """What there is to say about a phase that passes."""

    def __init__(self) -> None:
        self.detail = ""


class Phases:
    """The phases of one guest.

    Args:
        guest: Whose they are.
        redactor: Masks secrets in what they say.
        emit: Told when one begins and ends.
    """

    def __init__(self, guest: str, redactor: Redactor, emit: events.Emit = events.ignore) -> None:
        self._guest = guest
        self._redactor = redactor
        self._emit = emit
        self._done: list[Phase] = []

    @property
    def all(self) -> tuple[Phase, ...]:
        """All phases, in order."""
        return tuple(self._done)

    @contextlib.contextmanager
    def phase(self, name: str, title: str) -> Iterator[PhaseNote]:
        """Record the block as a phase.

        Raises:
            PhaseFailed: It failed with an error of ours, which is recorded.
        """
        began_s, note = time.monotonic(), PhaseNote()
        try:
            with events.step(self._emit, f"{name} {self._guest}", title):
                yield note
        except StackyardError as err:
            self._add(name, PhaseStatus.FAILED, began_s, err.detail)
            raise PhaseFailed from err
        self._add(name, PhaseStatus.PASSED, began_s, note.detail)

    def ignore_failure(self, detail: str) -> None:
        """Let the phase that has just failed not count: what it was for is done again."""
        last = self._done[-1]
        said = self._redactor(detail)
        self._done[-1] = dataclasses.replace(last, status=PhaseStatus.SKIPPED, detail=f"{said} {last.detail}")

    def record(self, name: str, status: PhaseStatus, detail: str = "") -> None:
        """Record a phase that took no time."""
        self._add(name, status, time.monotonic(), detail)

    def _add(self, name: str, status: PhaseStatus, began_s: float, detail: str) -> None:
        took_s = round(time.monotonic() - began_s, 3)
        self._done.append(Phase(name=name, status=status, took_s=took_s, detail=self._redactor(detail)))


def last_lines(output: str) -> str:
    """Return the end of an output, where programs say what went wrong; of very long lines the beginning."""
    lines = [line[:_LONGEST_LINE] for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-_QUOTED_LINES:]) or "It said nothing."
