"""What a report says, no matter who ran: a verb over a manifest, or a scenario."""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import stackyard

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.operator.outcome import NodeOutcome, Phase, PhaseStatus, RunOutcome

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run as reports tell it.

    Attributes:
        scenario: What was run: a verb, or the name of a scenario.
        subject: What it was run on, where that is something else than the host: the manifest.
        host: Where.
        success: Whether it did what it should.
        started_at: When it began, RFC 3339.
        duration_s: How long it took.
        phases: What was done for all nodes together, in order.
        nodes: What became of each node; none where there are none.
        error: Why it failed, where it did.
        orphans: Guests that are left over.
        logs: Where more is written.
    """

    scenario: str
    host: str
    success: bool
    started_at: str
    duration_s: float
    subject: str = ""
    phases: tuple[Phase, ...] = ()
    nodes: tuple[NodeOutcome, ...] = ()
    error: str | None = None
    orphans: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is about, in one line."""
        return " ".join(word for word in (self.scenario, self.subject) if word) + f" on {self.host}"

    @property
    def verdict(self) -> str:
        """The word that its files carry in their names."""
        return "passed" if self.success else "failed"

    @property
    def began(self) -> datetime.datetime:
        """When it began, in UTC."""
        began = datetime.datetime.fromisoformat(self.started_at)
        return began.astimezone(datetime.UTC) if began.tzinfo else began.replace(tzinfo=datetime.UTC)

    @property
    def ended(self) -> datetime.datetime:
        """When it ended, in UTC."""
        return self.began + datetime.timedelta(seconds=self.duration_s)

    def redact(self, redact: Callable[[str], str]) -> Report:
        """Return it with every text passed through a function that masks secrets."""
        return dataclasses.replace(
            self,
            subject=redact(self.subject),
            host=redact(self.host),
            phases=tuple(_redact_phase(phase, redact) for phase in self.phases),
            nodes=tuple(_redact_node(node, redact) for node in self.nodes),
            error=None if self.error is None else redact(self.error),
            orphans=tuple(map(redact, self.orphans)),
            logs=tuple(map(redact, self.logs)),
        )

    def document(self) -> dict[str, Any]:
        """Return the JSON view."""
        return {
            "scenario": self.scenario,
            "manifest": self.subject or None,
            "host": self.host,
            "success": self.success,
            "started_at": self.began.isoformat(timespec="seconds"),
            "finished_at": self.ended.isoformat(timespec="seconds"),
            "duration_seconds": round(self.duration_s, 3),
            "phases": [phase.as_json() for phase in self.phases],
            "nodes": [node.as_json() for node in self.nodes],
            "error": self.error,
            "orphans": list(self.orphans),
            "logs": list(self.logs),
            "version": stackyard.__version__,
        }

    def count(self, status: PhaseStatus) -> int:
        """Return how many phases ended in a way, those of nodes included."""
        phases = (*self.phases, *(phase for node in self.nodes for phase in node.phases))
        return sum(phase.status is status for phase in phases)


def report_of(outcome: RunOutcome) -> Report:
    """Return the report of a run over a manifest."""
    return Report(
        scenario=outcome.verb.value,
        subject=outcome.manifest,
        host=outcome.host,
        success=outcome.success,
        started_at=outcome.started_at,
        duration_s=outcome.duration_s,
        phases=outcome.phases,
        nodes=outcome.nodes,
        error=outcome.error,
        orphans=outcome.orphans,
        logs=outcome.logs,
    )


def _redact_phase(phase: Phase, redact: Callable[[str], str]) -> Phase:
    return dataclasses.replace(phase, name=redact(phase.name), detail=redact(phase.detail))


def _redact_node(node: NodeOutcome, redact: Callable[[str], str]) -> NodeOutcome:
    return dataclasses.replace(
        node,
        name=redact(node.name),
        host=redact(node.host),
        address=None if node.address is None else redact(node.address),
        phases=tuple(_redact_phase(phase, redact) for phase in node.phases),
        error=None if node.error is None else redact(node.error),
        cause=None if node.cause is None else redact(node.cause),
    )
