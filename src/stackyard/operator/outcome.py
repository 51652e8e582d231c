"""What became of a run: of each node, and of the whole. Plain values that travel as JSON."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.addresses import parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

# More than any guest of Proxmox has, any manifest is deep, and any run took.
_HIGHEST_VM_ID = 999_999_999
_DEEPEST = 1000
_LONGEST_S = 1e9

__all__ = ["NodeOutcome", "NodeStatus", "Phase", "PhaseStatus", "RunOutcome", "Verb"]


class Verb(enum.StrEnum):
    """What a run does; `verify` is the part of `test` that an outer operator asks of an inner one."""

    CREATE = "create"
    DESTROY = "destroy"
    TEST = "test"
    VERIFY = "verify"


class NodeStatus(enum.StrEnum):
    """How far a node is."""

    PENDING = "pending"
    CREATING = "creating"
    STARTED = "started"
    REACHED = "reached"
    CONFIGURED = "configured"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    DESTROYED = "destroyed"


class PhaseStatus(enum.StrEnum):
    """How a phase ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One piece of work, called `verb_noun`: `create_guest`, `wait_address`, `apply_spec`.

    Attributes:
        name: What was done.
        status: How it ended.
        took_s: How long it took.
        detail: What there is to say about it, in full sentences.
    """

    name: str
    status: PhaseStatus = PhaseStatus.PASSED
    took_s: float = 0.0
    detail: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it; `duration` is the word of the published form."""
        return {
            "name": self.name,
            "status": self.status.value,
            "duration": round(self.took_s, 3),
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Phase:
        """Return what `as_json` gave."""
        return cls(
            name=str(document["name"]),
            status=PhaseStatus(document["status"]),
            took_s=_seconds(document["duration"]),
            detail=_text(document.get("detail")) or "",
        )


def _text(said: object) -> str | None:
    """Return a text or nothing.

    Raises:
        TypeError: It is something else.
    """
    if said is not None and not isinstance(said, str):
        raise TypeError(f"a text was expected, and not {type(said).__name__}")
    return said


def _read_integer(said: object, most: int) -> int:
    """Return a whole number from zero up to a limit.

    Raises:
        ValueError: It is another one, or none.
    """
    if type(said) is not int or not 0 <= said <= most:
        raise ValueError(f"a whole number up to {most} was expected")
    return said


def _seconds(said: object) -> float:
    """Return a time that something took.

    Raises:
        ValueError: It is none.
    """
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= _LONGEST_S:
        raise ValueError("a number of seconds was expected")
    return float(said)


def _flag(said: object) -> bool:
    """Return yes or no.

    Raises:
        TypeError: It is something else, such as the text "false".
    """
    if not isinstance(said, bool):
        raise TypeError(f"true or false was expected, and not {type(said).__name__}")
    return said


def _address(said: object) -> str | None:
    """Return an address that was reported, printed from what was parsed; None for anything else."""
    try:
        return None if said is None else str(parse_address(said))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOutcome:
    """What became of one node.

    Attributes:
        name: The node.
        type: What it is: `vm`, `ct` or `pve`.
        status: How far it is.
        vm_id: Its id, where it has one.
        address: Where it answers, where it does.
        host: The host or node that it runs on.
        depth: Inside of how many nodes it runs.
        created: Whether this run made it; what was there before is never taken away by a rollback.
        phases: What was done, in order.
        error: Why it failed or was skipped.
        cause: The node that failed first, where that was another one.
    """

    name: str
    status: NodeStatus
    host: str
    type: str = "vm"
    vm_id: int | None = None
    address: str | None = None
    depth: int = 0
    created: bool = False
    phases: tuple[Phase, ...] = ()
    error: str | None = None
    cause: str | None = None

    @property
    def is_well(self) -> bool:
        """Whether it is as it was asked to be."""
        return self.status in (NodeStatus.COMPLETED, NodeStatus.DESTROYED)

    @property
    def took_s(self) -> float:
        """How long its phases took together."""
        return sum(phase.took_s for phase in self.phases)

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "name": self.name,
            "type": self.type,
            "status": self.status.value,
            "vm_id": self.vm_id,
            "ip": self.address,
            "host": self.host,
            "depth": self.depth,
            "created": self.created,
            "duration": round(self.took_s, 3),
            "phases": [phase.as_json() for phase in self.phases],
            "error": self.error,
            "cause": self.cause,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> NodeOutcome:
        """Return what `as_json` gave."""
        return cls(
            name=str(document["name"]),
            type=str(document.get("type", "vm")),
            status=NodeStatus(document["status"]),
            vm_id=None if document.get("vm_id") is None else _read_integer(document["vm_id"], _HIGHEST_VM_ID),
            address=_address(document.get("ip")),
            host=str(document["host"]),
            depth=_read_integer(document.get("depth", 0), _DEEPEST),
            created=_flag(document.get("created", False)),
            phases=tuple(Phase.from_json(phase) for phase in document.get("phases", ())),
            error=_text(document.get("error")),
            cause=_text(document.get("cause")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """What became of a run.

    Attributes:
        verb: What was asked for.
        manifest: Of which manifest.
        host: On which host.
        success: Whether everything is as it was asked to be.
        started_at: When it began, RFC 3339 in UTC.
        duration_s: How long it took.
        nodes: Every node of the manifest, at every depth.
        phases: What was done for all nodes together, in order.
        error: Why it failed, where it did.
        orphans: Guests that carry the tag of the manifest and are in no state, as `NAME (ID on NODE)`.
        logs: Where more is written: the record, the reports.
    """

    verb: Verb
    manifest: str
    host: str
    success: bool
    started_at: str
    duration_s: float
    nodes: tuple[NodeOutcome, ...] = ()
    phases: tuple[Phase, ...] = ()
    error: str | None = None
    orphans: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "verb": self.verb.value,
            "manifest": self.manifest,
            "host": self.host,
            "success": self.success,
            "started_at": self.started_at,
            "duration_seconds": round(self.duration_s, 3),
            "nodes": [node.as_json() for node in self.nodes],
            "phases": [phase.as_json() for phase in self.phases],
            "error": self.error,
            "orphans": list(self.orphans),
            "logs": list(self.logs),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunOutcome:
        """Return what `as_json` gave."""
        return cls(
            verb=Verb(document["verb"]),
            manifest=str(document["manifest"]),
            host=str(document["host"]),
            success=_flag(document["success"]),
            started_at=str(document["started_at"]),
            duration_s=_seconds(document["duration_seconds"]),
            nodes=tuple(NodeOutcome.from_json(node) for node in document.get("nodes", ())),
            phases=tuple(Phase.from_json(phase) for phase in document.get("phases", ())),
            error=_text(document.get("error")),
            orphans=tuple(map(str, document.get("orphans", ()))),
            logs=tuple(map(str, document.get("logs", ()))),
        )
