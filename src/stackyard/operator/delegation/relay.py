"""Events of an inner run as records of the channel, and as events of the outer run."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any

from stackyard.base import events

__all__ = ["as_body", "mask", "parse_event"]

_TYPES = {kind.type: kind for kind in events.EVENT_TYPES}
# These say that a whole command began, is ready or has ended; of the outer run there is one.
_OF_A_COMMAND = (events.RunStarted, events.RunReady, events.RunFinished)
_WORDS: Mapping[tuple[str, str], Callable[[str], Any]] = {
    (events.LogLine.type, "level"): events.LogLevel,
    (events.StepFinished.type, "outcome"): events.Outcome,
    (events.ResourceApplied.type, "phase"): events.ApplyPhase,
}
# A line of a log that is longer helps no one, and a screen full of it hides the rest.
_LONGEST_TEXT = 64 * 1024
# What gets the name of the host before it, and how.
_NAMED = {"step": "/", "source": "/", "title": ": ", "address": ": "}


def as_body(event: events.Event) -> Mapping[str, Any] | None:
    """Return an event as a record; nothing for one that says nothing outside."""
    if isinstance(event, _OF_A_COMMAND):
        return None
    fields = {one.name: getattr(event, one.name) for one in dataclasses.fields(event)}
    return {"type": event.type, **fields}


def mask(value: Any, redact: Callable[[str], str]) -> Any:
    """Return a document with every text in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: mask(part, redact) for key, part in value.items()}
    return [mask(part, redact) for part in value] if isinstance(value, list | tuple) else value


@functools.cache
def _kinds(type_: str, field: str) -> tuple[type, ...]:
    """Return what a field of an event may be."""
    hint = typing.get_type_hints(_TYPES[type_])[field]
    kinds = typing.get_args(hint) or (hint,)
    # JSON has one kind of number.
    return (*kinds, int) if float in kinds else kinds


def parse_event(body: Mapping[str, Any], host: str) -> events.Event | None:
    """Return a record as an event of the outer run; nothing for a kind that this version does not know."""
    kind = _TYPES.get(str(body.get("type")))
    if kind is None:
        return None
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in body:
            continue
        value = body[field.name]
        if isinstance(value, str):
            value = value[:_LONGEST_TEXT]
        if field.name in _NAMED and isinstance(value, str):
            value = f"{host}{_NAMED[field.name]}{value}"
        word = _WORDS.get((kind.type, field.name))
        try:
            values[field.name] = value if word is None else word(value)
        except (ValueError, TypeError):
            return None
        # A text where a number is shown would break the view of the whole run.
        if not isinstance(values[field.name], _kinds(kind.type, field.name)):
            return None
    try:
        return kind(**values)
    except TypeError:
        return None
