from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from stackyard.base import events, process
from stackyard.base.redaction import MASK, Redactor
from stackyard.engine.ui import Stream
from stackyard.engine.version import Engine, Flavour, Version
from stackyard.engine.workdir import Workdir

SECRET = "hunter2-hunter2"
WORKDIR = Workdir(
    engine=Engine(path=Path("/opt/tofu"), flavour=Flavour.TOFU, version=Version(1, 12, 6)),
    folder=Path("/srv/site"),
    redactor=Redactor([SECRET]),
)
RESOURCE = {"addr": "terraform_data.a", "resource_type": "terraform_data"}


def read(*messages: dict[str, Any] | str) -> tuple[Stream, list[events.Event]]:
    """Feed messages (or lines as they are) to a stream."""
    seen: list[events.Event] = []
    stream = Stream(WORKDIR, seen.append)
    for message in messages:
        if isinstance(message, dict):
            message = json.dumps({"@level": "info", "@message": "m"} | message)
        stream(process.Stream.STDOUT, message)
    return stream, seen


def test_a_planned_change_becomes_an_event() -> None:
    change = {"resource": RESOURCE, "action": "replace", "reason": "cannot_update"}
    _, seen = read({"type": "planned_change", "change": change})
    assert seen == [
        events.ResourcePlanned(address="terraform_data.a", action="replace", reason="cannot_update")
    ]


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        ("apply_start", events.ApplyPhase.STARTED),
        ("apply_progress", events.ApplyPhase.RUNNING),
        ("apply_complete", events.ApplyPhase.DONE),
        ("apply_errored", events.ApplyPhase.FAILED),
    ],
)
def test_each_phase_of_a_change_becomes_an_event(kind: str, phase: events.ApplyPhase) -> None:
    _, seen = read({"type": kind, "hook": {"resource": RESOURCE, "action": "create", "elapsed_seconds": 7}})
    (event,) = seen
    assert event == events.ResourceApplied(
        address="terraform_data.a", action="create", phase=phase, elapsed_s=7.0
    )


def test_totals_are_counted_in_the_form_of_either_engine() -> None:
    changes = {"add": 1, "change": 2, "remove": 3, "operation": "plan"}
    stream, seen = read({"type": "change_summary", "changes": changes})
    counted = events.PlanCounted(operation="plan", add=1, change=2, remove=3, imported=0)
    assert (stream.counted, seen) == (counted, [counted])
    stream, _ = read({"type": "change_summary", "changes": {**changes, "import": 4, "forget": 5}})
    assert stream.counted is not None
    assert stream.counted.imported == 4


def test_a_diagnostic_is_kept_and_told_with_its_place() -> None:
    stream, seen = read(
        {
            "@level": "warn",
            "type": "diagnostic",
            "diagnostic": {
                "severity": "warning",
                "summary": "Deprecated",
                "detail": f"The value {SECRET} is old.",
                "address": "terraform_data.a",
                "range": {"filename": "modules/m/main.tf", "start": {"line": 3, "column": 5, "byte": 40}},
            },
        }
    )
    (told,) = seen
    assert told == events.DiagnosticFound(
        severity="warning",
        code="W-TOFU",
        summary="Deprecated",
        detail=f"The value {MASK} is old.",
        file="/srv/site/modules/m/main.tf",
        line=3,
        column=5,
        address="terraform_data.a",
    )
    (finding,) = stream.findings
    assert str(finding.diagnostic().where) == "/srv/site/modules/m/main.tf:3:5"


def test_the_place_of_a_value_from_the_environment_is_no_file() -> None:
    place = {"filename": "<value for var.size>", "start": {"line": 1, "column": 1}}
    stream, _ = read(
        {"type": "diagnostic", "diagnostic": {"severity": "error", "summary": "s", "range": place}}
    )
    where = stream.findings[0].where
    assert where is not None
    assert where.path == "<value for var.size>"


def test_an_error_outside_a_diagnostic_counts_as_one() -> None:
    stream, seen = read({"@level": "error", "@message": f"cannot read {SECRET}"})
    assert [finding.summary for finding in stream.findings] == [f"cannot read {MASK}"]
    assert isinstance(seen[0], events.DiagnosticFound)


def test_values_of_outputs_are_never_passed_on() -> None:
    outputs = {"open": {"sensitive": False, "value": "seen"}, "shut": {"sensitive": True, "value": "unseen"}}
    _, seen = read({"type": "outputs", "@message": "Outputs: 2", "outputs": outputs})
    assert seen == [events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text="Outputs: 2")]


@pytest.mark.parametrize("kind", ["version", "log", "resource_drift", "refresh_start", "of_the_future", None])
def test_every_other_message_is_a_log_line(kind: str | None) -> None:
    stream, seen = read({"type": kind, "@message": f"text with {SECRET}"})
    assert seen == [events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text=f"text with {MASK}")]
    assert stream.spoke


@pytest.mark.parametrize(
    "line",
    [
        "plain text",
        '{"@level":"info","@message":"cut o',
        "[1, 2]",
        '"text"',
        "null",
        '{"no": "message"}',
        "\x1b[0m\x1b[32m",
        "\ufffd",
    ],
)
def test_a_line_that_is_no_message_is_tolerated(line: str) -> None:
    stream, seen = read(line, "", "   ")
    assert seen == [events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text=line)]
    assert not stream.spoke
    assert line in stream.stray


@pytest.mark.parametrize(
    "message",
    [
        {"type": "planned_change"},
        {"type": "planned_change", "change": {"resource": None}},
        {"type": "change_summary", "changes": {"add": "many"}},
        {"type": "apply_start", "hook": []},
        {"type": "diagnostic", "diagnostic": {"detail": "without a summary"}},
        {"type": "diagnostic", "diagnostic": "text"},
        {"type": ["not", "a", "word"]},
    ],
)
def test_a_known_message_in_an_unknown_form_is_a_log_line(message: dict[str, Any]) -> None:
    stream, seen = read(message)
    assert seen == [events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text="m")]
    assert stream.counted is None


def test_a_message_that_is_cut_off_shows_no_more_than_its_beginning() -> None:
    state = {
        "@level": "info",
        "@message": "Emergency state dump",
        "@timestamp": "x" * 27,
        "state": ["a value"],
    }
    stream, seen = read(json.dumps(state)[:-1])
    assert "Emergency state dump" in stream.stray[0]
    assert "a value" not in repr(seen) + stream.stray[0]


def test_what_goes_to_the_other_stream_is_a_warning() -> None:
    seen: list[events.Event] = []
    stream = Stream(WORKDIR, seen.append)
    stream(process.Stream.STDERR, f"panic: {SECRET}")
    assert seen == [events.LogLine(level=events.LogLevel.WARNING, source="tofu", text=f"panic: {MASK}")]
    assert list(stream.stray) == [f"panic: {MASK}"]


def test_a_state_in_the_stream_is_kept_and_never_told() -> None:
    state = {"version": 4, "serial": 2, "lineage": "l", "resources": ["a value"]}
    stream, seen = read({"type": "log", "@message": "Emergency state dump", "state": state})
    assert stream.dumped_state is not None
    assert json.loads(stream.dumped_state) == state
    assert seen == [events.LogLine(level=events.LogLevel.DEBUG, source="tofu", text="Emergency state dump")]


FINDING = {
    "severity": "error",
    "summary": "Wrong",
    "detail": "It is wrong.",
    "address": "terraform_data.a",
    "range": {"filename": "main.tf", "start": {"line": 3, "column": 5, "byte": 40}},
}
MESSAGES: list[dict[str, Any]] = [
    {"type": "diagnostic", "diagnostic": FINDING},
    {"type": "planned_change", "change": {"resource": RESOURCE, "action": "create", "reason": "tainted"}},
    {
        "type": "change_summary",
        "changes": {"operation": "plan", "add": 1, "change": 1, "remove": 1, "import": 1},
    },
    {"type": "apply_start", "hook": {"resource": RESOURCE, "action": "create", "elapsed_seconds": 1}},
    {"type": "outputs", "outputs": {"a": {"value": 1}}, "state": {"serial": 1}},
]
ODD: list[Any] = [None, True, 0, -1.5, 1e300, "", "x", "7", [], [1], {}, {"a": 1}]
VALIDATOR = jsonschema_rs.validator_for(events.schema())


def places_in(value: Any) -> list[tuple[str, ...]]:
    """Return the way to each value inside a message."""
    if not isinstance(value, dict):
        return []
    below = [(key, *rest) for key, inner in value.items() for rest in places_in(inner)]
    return [*((key,) for key in value), *below]


def replaced(value: dict[str, Any], place: tuple[str, ...], odd: Any) -> dict[str, Any]:
    inner = replaced(value[place[0]], place[1:], odd) if place[1:] else odd
    return value | {place[0]: inner}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["type"])
def test_whatever_stands_in_a_message_its_events_follow_the_schema(message: dict[str, Any]) -> None:
    whole = {"@level": "info", "@message": "m"} | message
    for place in places_in(whole):
        for odd in ODD:
            _, seen = read(replaced(whole, place, odd))
            for event in seen:
                record = events.record(event, seq=1, at="2030-01-31T12:00:00Z")
                assert list(VALIDATOR.iter_errors(json.loads(json.dumps(record)))) == []
