"""What is written down of a manifest on a host: its nodes as they are now, and the run that made them so."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.operator.outcome import NodeOutcome, NodeStatus, Verb

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RunRecord", "RunState"]

FORMAT = 1


class RunState(enum.StrEnum):
    """How the run of a record ended; one that was killed says `running` for ever."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """The last run of a manifest on a host.

    Attributes:
        manifest: The manifest.
        host: The host.
        verb: What the run was for.
        state: How it ended.
        started_at: When it began, RFC 3339 in UTC.
        finished_at: When it ended, where it did.
        pid: The process of the run.
        document: The manifest as it was run, where there was one.
        vm_ids: Ids that were given for nodes on the command line.
        nodes: The nodes as they are now.
        error: Why the run failed, where it did.
    """

    manifest: str
    host: str
    verb: Verb
    state: RunState
    started_at: str
    pid: int
    finished_at: str | None = None
    document: Mapping[str, Any] | None = None
    vm_ids: Mapping[str, int] = field(default_factory=dict)
    nodes: tuple[NodeOutcome, ...] = ()
    error: str | None = None

    @property
    def is_unfinished(self) -> bool:
        """Whether the run was killed, or stopped on request."""
        return self.state in (RunState.RUNNING, RunState.STOPPED)

    @property
    def is_over(self) -> bool:
        """Whether nothing is there any more."""
        return all(node.status is NodeStatus.DESTROYED for node in self.nodes)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "format": FORMAT,
            "manifest": self.manifest,
            "host": self.host,
            "verb": self.verb.value,
            "state": self.state.value,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
            "pid": self.pid,
            "document": self.document,
            "vm_ids": dict(self.vm_ids),
            "nodes": [node.as_json() for node in self.nodes],
            "error": self.error,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunRecord:
        """Return what `as_json` gave.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: It is something else.
        """
        fields = {name.name for name in dataclasses.fields(cls)}
        plain = {key: value for key, value in document.items() if key in fields}
        plain["verb"] = Verb(document["verb"])
        plain["state"] = RunState(document["state"])
        plain["nodes"] = tuple(NodeOutcome.from_json(node) for node in document["nodes"])
        return cls(**plain)
