"""Schedules of Proxmox jobs."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from stackyard.base.calendar_events import CalendarEventError, parse_calendar_event

__all__ = ["Schedule", "check_schedule"]

_EXAMPLES = "such as `*/15`, `daily`, `mon..fri 22:30` or `sat *-1..7 04:00`"


def check_schedule(text: str) -> str:
    """Return a schedule as it is written.

    Raises:
        ValueError: It is none, or one for a day that never comes.
    """
    try:
        event = parse_calendar_event(text)
    except CalendarEventError as err:
        raise ValueError(f"{err}: write one {_EXAMPLES}") from err
    if event.next_after(0) is None:
        raise ValueError(f"`{text}` is a day that never comes")
    return text


Schedule = Annotated[str, StringConstraints(max_length=128), AfterValidator(check_schedule)]
