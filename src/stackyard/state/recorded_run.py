"""A run that is remembered: who ran what, where, on which input, and how it ended."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.state.names import object_part
from stackyard.state.record_keys import begin_record_key

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Outcome", "RecordedRun"]


class Outcome(enum.StrEnum):
    """How a run ended."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"
    # It neither ended nor lives: it was killed, or its machine was.
    LOST = "lost"
    # Its record is damaged, or of a newer version.
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A run.

    Attributes:
        id: What it is called by.
        verb: What it did: `plan`, `apply` and others.
        target: To what.
        state: The state of that.
        by: Who ran it.
        machine: On which machine.
        version: The version of stackyard.
        started_at: When it began, in seconds since 1970.
        outcome: How it ended.
        commit: The commit of the input, where that is in git; `-dirty` behind it where files differ.
        finished_at: When it ended, where it did.
        error: Why it failed, as `--json` shows errors.
        before: The version of the state when it began.
        after: The version of the state when it ended.
        counts: What was planned and applied: how many resources were added, changed and removed.
        notes: What else a verb reports.
    """

    id: str
    verb: str
    target: str
    state: str
    by: str
    machine: str
    version: str
    started_at: float
    outcome: Outcome = Outcome.RUNNING
    commit: str = ""
    finished_at: float | None = None
    error: Mapping[str, Any] | None = None
    before: str = ""
    after: str = ""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its object."""
        return f"{begin_record_key(self.started_at)}-{self.id},{self.verb},{object_part(self.state)}"

    @property
    def duration_s(self) -> float | None:
        """How long it took, where it has ended."""
        return None if self.finished_at is None else max(0.0, self.finished_at - self.started_at)
