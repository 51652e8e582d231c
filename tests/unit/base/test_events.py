"""The stream of events: each record follows the published schema, and a step always ends."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stackyard.base import events
from stackyard.base.errors import InvalidInputError

PUBLISHED = Path(__file__).parents[3] / "docs" / "reference" / "events.schema.json"
AT = "2030-01-31T12:00:00.123Z"
VALIDATOR = jsonschema_rs.validator_for(events.schema(), validate_formats=True)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(0, 2**53),
    float: st.floats(min_value=0, allow_infinity=False),
    type(None): st.none(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(hint) is Mapping:
        return st.dictionaries(st.text(), json_values, max_size=3)
    if isinstance(hint, type) and issubclass(hint, enum.StrEnum):
        return st.sampled_from(list(hint))
    if alternatives := typing.get_args(hint):
        return st.one_of(*(VALUES[alternative] for alternative in alternatives))
    return VALUES[hint]


def events_of(event_type: type[events.Event]) -> st.SearchStrategy[events.Event]:
    hints = typing.get_type_hints(event_type)
    fields = {field.name: values_of(hints[field.name]) for field in dataclasses.fields(event_type)}
    return st.builds(event_type, **fields)


def line_of(event: events.Event, seq: int = 1) -> Any:
    """Return what a reader of the output sees."""
    return json.loads(orjson.dumps(events.record(event, seq=seq, at=AT)))


@pytest.mark.parametrize("event_type", events.EVENT_TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_every_record_follows_the_schema(event_type: type[events.Event], data: st.DataObject) -> None:
    event = data.draw(events_of(event_type))
    line = line_of(event, seq=data.draw(st.integers(1, 2**53)))
    VALIDATOR.validate(line)
    assert line["type"] == event_type.type
    assert {"v", "seq", "at", "type", *(field.name for field in dataclasses.fields(event))} == set(line)


@pytest.mark.parametrize("event_type", events.EVENT_TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_every_event_is_read_from_its_record(event_type: type[events.Event], data: st.DataObject) -> None:
    event = data.draw(events_of(event_type))
    assert events.read(line_of(event)) == event


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"type": "of.a.later.version"},
        {"type": events.LogLine.type, "level": "info"},
        {"type": events.LogLine.type, "level": "shouting", "source": "x", "text": "y"},
    ],
)
def test_a_record_that_this_version_does_not_know_is_no_event(document: dict[str, Any]) -> None:
    assert events.read(document) is None


def test_the_published_schema_is_that_of_the_code() -> None:
    published = PUBLISHED.read_bytes()
    assert json.loads(published) == events.schema()
    assert published == orjson.dumps(events.schema(), option=orjson.OPT_INDENT_2) + b"\n"


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema_rs.meta.validate(events.schema())
    assert len(events.schema()["oneOf"]) == len(events.EVENT_TYPES)


def test_every_event_type_is_published_under_a_name_of_its_own() -> None:
    subclasses = {
        value
        for value in vars(events).values()
        if isinstance(value, type) and issubclass(value, events.Event) and value is not events.Event
    }
    assert subclasses == set(events.EVENT_TYPES)
    assert len({event_type.type for event_type in events.EVENT_TYPES}) == len(events.EVENT_TYPES)
    assert {event_type.__name__ for event_type in events.EVENT_TYPES} <= set(events.__all__)


def test_every_event_type_says_what_happened() -> None:
    described = {
        part["properties"]["type"]["const"]: part["description"] for part in events.schema()["oneOf"]
    }
    assert [name for name, text in described.items() if not text.endswith(".")] == []
    # A dataclass without a docstring gets its signature as one.
    assert [name for name, text in described.items() if "(" in text] == []


LOG_LINE = events.LogLine(level=events.LogLevel.INFO, source="apply", text="hello")


@pytest.mark.parametrize(
    "change",
    [
        {"type": "step.exploded"},
        {"type": "step.started"},
        {"type": None},
        {"v": 2},
        {"v": "1"},
        {"seq": 0},
        {"seq": 1.5},
        {"at": "yesterday"},
        {"at": 12},
        {"level": "fatal"},
        {"text": None},
        {"unknown": "field"},
    ],
    ids=str,
)
def test_a_record_that_is_not_ours_fails_validation(change: dict[str, Any]) -> None:
    line = line_of(LOG_LINE)
    assert VALIDATOR.is_valid(line)
    assert not VALIDATOR.is_valid(line | change)


@pytest.mark.parametrize("name", ["v", "seq", "at", "type", "level", "source", "text"])
def test_a_record_without_one_of_its_fields_fails_validation(name: str) -> None:
    line = line_of(LOG_LINE)
    del line[name]
    assert not VALIDATOR.is_valid(line)


@pytest.mark.parametrize("event_type", events.EVENT_TYPES)
def test_an_event_cannot_be_changed(event_type: type[events.Event]) -> None:
    name = dataclasses.fields(event_type)[0].name
    event = object.__new__(event_type)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, name, "changed")


def test_a_step_that_ends_is_done() -> None:
    seen: list[events.Event] = []
    with events.step(seen.append, "plan", "Plan the changes") as step:
        step.waiting("the lock")
        step.progressed(1, 3, "guests")
        step.progressed(2, None, "guests")
        step.log("careful", events.LogLevel.WARNING)
    *middle, finished = seen
    assert middle == [
        events.StepStarted(step="plan", title="Plan the changes"),
        events.StepWaiting(step="plan", waiting_for="the lock"),
        events.StepProgressed(step="plan", done=1, total=3, unit="guests"),
        events.StepProgressed(step="plan", done=2, total=None, unit="guests"),
        events.LogLine(level=events.LogLevel.WARNING, source="plan", text="careful"),
    ]
    assert isinstance(finished, events.StepFinished)
    assert (finished.step, finished.outcome, finished.detail) == ("plan", events.Outcome.DONE, "")
    assert finished.elapsed_s >= 0
    for event in seen:
        VALIDATOR.validate(line_of(event))


def outcome_of(err: BaseException) -> tuple[events.Outcome, str]:
    """Return how a step ends that raises this, which must go on to the caller."""
    seen: list[events.Event] = []
    with pytest.raises(type(err)) as caught, events.step(seen.append, "apply", "Apply"):
        raise err
    assert caught.value is err
    assert len(seen) == 2
    finished = seen[-1]
    assert isinstance(finished, events.StepFinished)
    return finished.outcome, finished.detail


def test_a_step_that_raises_has_failed_and_says_why() -> None:
    assert outcome_of(InvalidInputError("No.")) == (events.Outcome.FAILED, "No.")
    assert outcome_of(ZeroDivisionError("division by zero")) == (events.Outcome.FAILED, "division by zero")


@pytest.mark.parametrize("err", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_a_step_that_is_stopped_is_cancelled(err: BaseException) -> None:
    assert outcome_of(err) == (events.Outcome.CANCELLED, "")


def test_a_cancelled_task_ends_its_steps_from_the_inside_out() -> None:
    seen: list[events.Event] = []

    async def work(started: asyncio.Event) -> None:
        with events.step(seen.append, "outer", "Outer"), events.step(seen.append, "inner", "Inner"):
            started.set()
            await asyncio.Event().wait()

    async def scenario() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(work(started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    ended = [event for event in seen if isinstance(event, events.StepFinished)]
    assert [(event.step, event.outcome) for event in ended] == [
        ("inner", events.Outcome.CANCELLED),
        ("outer", events.Outcome.CANCELLED),
    ]
