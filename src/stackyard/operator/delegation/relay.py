"""Events of an inner run as records of the channel, and as events of the outer run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from stackyard.base import events

__all__ = ["as_body", "mask", "parse_event"]

# These say that a whole command began, is ready or has ended; of the outer run there is one.
_OF_A_COMMAND = (events.RunStarted, events.RunReady, events.RunFinished)
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


def parse_event(body: Mapping[str, Any], host: str) -> events.Event | None:
    """Return a record as an event of the outer run; nothing for a kind that this version does not know."""
    named: dict[str, Any] = {}
    for name, value in body.items():
        text = value[:_LONGEST_TEXT] if isinstance(value, str) else value
        named[name] = f"{host}{_NAMED[name]}{text}" if name in _NAMED and isinstance(text, str) else text
    return events.read(named)
