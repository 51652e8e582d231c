"""The one stream of events: the core emits, views consume.

Events are frozen values of a closed set, `EVENT_TYPES`. `record` gives the JSON line of an event, `schema`
the published JSON Schema of such lines (docs/reference/events.schema.json). Within version 1 events and
fields are only added. An event never holds a secret: anyone who emits text from outside redacts it first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import time
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = [
    "EVENT_TYPES",
    "SCHEMA_VERSION",
    "ApplyPhase",
    "DiagnosticFound",
    "Emit",
    "Event",
    "LogLevel",
    "LogLine",
    "Outcome",
    "PlanCounted",
    "ResourceApplied",
    "ResourcePlanned",
    "ResourceWaiting",
    "RunFinished",
    "RunReady",
    "RunStarted",
    "Step",
    "StepFinished",
    "StepProgressed",
    "StepStarted",
    "StepWaiting",
    "ignore",
    "record",
    "schema",
    "step",
]

SCHEMA_VERSION = 1


class Outcome(enum.StrEnum):
    """How a step ended."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class LogLevel(enum.StrEnum):
    """How loud a log line is."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ApplyPhase(enum.StrEnum):
    """Where the change of one resource stands."""

    STARTED = "started"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened."""

    type: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A command began."""

    type: ClassVar[str] = "run.started"
    command: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReady(Event):
    """A command that keeps running, such as a server, is ready to be used."""

    type: ClassVar[str] = "run.ready"
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A command ended: always the last event, with the object that `--json` would have printed."""

    type: ClassVar[str] = "run.finished"
    exit_status: int
    elapsed_s: float
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """A named piece of work began."""

    type: ClassVar[str] = "step.started"
    step: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWaiting(Event):
    """A step waits for something outside."""

    type: ClassVar[str] = "step.waiting"
    step: str
    waiting_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgressed(Event):
    """A step got further; `total` is absent while it is unknown."""

    type: ClassVar[str] = "step.progressed"
    step: str
    done: int
    total: int | None
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """A step ended."""

    type: ClassVar[str] = "step.finished"
    step: str
    outcome: Outcome
    detail: str
    elapsed_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine(Event):
    """A line from a program that we run, or from our own work."""

    type: ClassVar[str] = "log"
    level: LogLevel
    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticFound(Event):
    """A finding of ours or of a program that we run."""

    type: ClassVar[str] = "diagnostic"
    severity: str
    code: str
    summary: str
    detail: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePlanned(Event):
    """A plan would change this resource."""

    type: ClassVar[str] = "resource.planned"
    address: str
    action: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceApplied(Event):
    """The change of one resource began, continues or ended; `reason` says why it failed, if known."""

    type: ClassVar[str] = "resource.applied"
    address: str
    action: str
    phase: ApplyPhase
    elapsed_s: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceWaiting(Event):
    """The change of one resource waits for something: another resource, a task of Proxmox, a guest."""

    type: ClassVar[str] = "resource.waiting"
    address: str
    waiting_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCounted(Event):
    """The totals of a plan or of an apply."""

    type: ClassVar[str] = "plan.counted"
    operation: str
    add: int
    change: int
    remove: int
    imported: int


EVENT_TYPES: tuple[type[Event], ...] = (
    RunStarted,
    RunReady,
    RunFinished,
    StepStarted,
    StepWaiting,
    StepProgressed,
    StepFinished,
    LogLine,
    DiagnosticFound,
    ResourcePlanned,
    ResourceApplied,
    ResourceWaiting,
    PlanCounted,
)

_TYPES = {kind.type: kind for kind in EVENT_TYPES}

Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Consume an event and do nothing: the view of a caller that wants none."""
    del event


@dataclass(frozen=True, slots=True)
class Step:
    """A running step, to report how it gets on."""

    name: str
    emit: Emit

    def waiting(self, waiting_for: str) -> None:
        """Say what the step waits for."""
        self.emit(StepWaiting(step=self.name, waiting_for=waiting_for))

    def progressed(self, done: int, total: int | None, unit: str) -> None:
        """Say how far the step is."""
        self.emit(StepProgressed(step=self.name, done=done, total=total, unit=unit))

    def log(self, text: str, level: LogLevel = LogLevel.INFO) -> None:
        """Pass on one line of text."""
        self.emit(LogLine(level=level, source=self.name, text=text))


@contextlib.contextmanager
def step(emit: Emit, name: str, title: str) -> Iterator[Step]:
    """Emit the start and the end of a piece of work, failed or cancelled when it raises."""
    emit(StepStarted(step=name, title=title))
    began = time.monotonic()
    outcome, detail = Outcome.CANCELLED, ""
    try:
        yield Step(name, emit)
        outcome = Outcome.DONE
    except Exception as err:
        outcome, detail = Outcome.FAILED, str(err)
        raise
    finally:
        elapsed = round(time.monotonic() - began, 3)
        emit(StepFinished(step=name, outcome=outcome, detail=detail, elapsed_s=elapsed))


def record(event: Event, *, seq: int, at: str) -> dict[str, Any]:
    """Return the JSON line of an event.

    Args:
        event: What happened.
        seq: Its number in this run, from one.
        at: When it happened, RFC 3339 in UTC.
    """
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return {"v": SCHEMA_VERSION, "seq": seq, "at": at, "type": event.type, **fields}


def read(document: Mapping[str, Any]) -> Event | None:
    """Return the event of a JSON line; None for one that is not known here, or that makes no sense."""
    kind = _TYPES.get(str(document.get("type")))
    if kind is None:
        return None
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in document:
            continue
        kinds = _kinds(kind.type, field.name)
        value = document[field.name]
        words = next((one for one in kinds if issubclass(one, enum.Enum)), None)
        try:
            values[field.name] = value if words is None else words(value)
        except (ValueError, TypeError):
            return None
        # A text where a number is shown would break the view of the whole run.
        if not isinstance(values[field.name], kinds):
            return None
    try:
        return kind(**values)
    except TypeError:
        return None


@functools.cache
def _kinds(event_type: str, field: str) -> tuple[type, ...]:
    """Return what a field of an event may be."""
    hint = typing.get_type_hints(_TYPES[event_type])[field]
    origin = typing.get_origin(hint)
    kinds: tuple[type, ...] = (origin,) if origin is Mapping else typing.get_args(hint) or (hint,)
    # JSON has one kind of number.
    return (*kinds, int) if float in kinds else kinds


def schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of `--events` output."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of stackyard --events",
        "oneOf": [_event_schema(event_type) for event_type in EVENT_TYPES],
    }


def _event_schema(event_type: type[Event]) -> dict[str, Any]:
    hints = typing.get_type_hints(event_type)
    properties: dict[str, Any] = {
        "v": {"const": SCHEMA_VERSION},
        "seq": {"type": "integer", "minimum": 1},
        "at": {"type": "string", "format": "date-time"},
        "type": {"const": event_type.type},
    }
    properties |= {field.name: _type_schema(hints[field.name]) for field in dataclasses.fields(event_type)}
    return {
        "type": "object",
        "description": (event_type.__doc__ or "").strip(),
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_PLAIN_TYPES: dict[object, str] = {str: "string", int: "integer", float: "number", type(None): "null"}


def _type_schema(hint: Any) -> dict[str, Any]:
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return {"enum": [member.value for member in hint]}
    if typing.get_origin(hint) is Mapping:
        return {"type": "object"}
    if arguments := typing.get_args(hint):
        return {"type": [_PLAIN_TYPES[argument] for argument in arguments]}
    return {"type": _PLAIN_TYPES[hint]}
