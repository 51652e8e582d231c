"""What became of a run of a scenario."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base import diagnostics
from stackyard.base.errors import ExitStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.base.errors import StackyardError

__all__ = ["PhaseOutcome", "PhaseStatus", "ScenarioOutcome"]


class PhaseStatus(enum.StrEnum):
    """How a phase ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutcome:
    """What became of a phase."""

    name: str
    description: str
    status: PhaseStatus
    took_s: float = 0.0
    message: str = ""

    def document(self) -> dict[str, Any]:
        """Return the JSON view; the first three fields are those of homestak."""
        return {
            "name": self.name,
            "status": self.status.value,
            "duration": round(self.took_s, 1),
            "description": self.description,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOutcome:
    """What became of a run.

    Attributes:
        scenario: Which one.
        machine: Where.
        started_at: When, RFC 3339 in UTC.
        took_s: How long it took.
        phases: Each phase that was reached.
        context: What was found out.
        error: What stopped it, where something did.
        reports: Where more is written.
    """

    scenario: str
    machine: str
    started_at: str
    took_s: float
    phases: tuple[PhaseOutcome, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    error: StackyardError | None = None
    reports: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        """Whether every phase that ran passed."""
        return self.error is None

    @property
    def status(self) -> ExitStatus:
        """What the shell gets."""
        return ExitStatus.DONE if self.error is None else self.error.exit_status

    def document(self, *, plain_error: bool) -> dict[str, Any]:
        """Return the JSON view, in homestak's schema.

        Args:
            plain_error: Whether `error` is the message alone, as homestak has it, and not an object.
        """
        document: dict[str, Any] = {
            "scenario": self.scenario,
            "success": self.success,
            "duration_seconds": round(self.took_s, 1),
            "phases": [phase.document() for phase in self.phases],
            "context": {key: value for key, value in self.context.items() if not key.startswith("_")},
            "host": self.machine,
            "started_at": self.started_at,
            "reports": list(self.reports),
        }
        if self.error is not None:
            document["error"] = (
                diagnostics.in_full(self.error) if plain_error else diagnostics.describe(self.error)
            )
        return document
