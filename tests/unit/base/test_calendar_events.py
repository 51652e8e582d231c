"""Calendar events: when jobs run."""

from __future__ import annotations

import datetime

import pytest

from stackyard.base.calendar_events import CalendarEventError, parse_calendar_event

# A Monday.
START = datetime.datetime(2026, 11, 16, 4, 7, 30, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("minutely", "2026-11-16 04:08:00"),
        ("hourly", "2026-11-16 05:00:00"),
        ("daily", "2026-11-17 00:00:00"),
        ("weekly", "2026-11-23 00:00:00"),
        ("monthly", "2026-12-01 00:00:00"),
        ("quarterly", "2027-01-01 00:00:00"),
        ("yearly UTC", "2027-01-01 00:00:00"),
        ("*/15", "2026-11-16 04:15:00"),
        ("5/20", "2026-11-16 04:25:00"),
        ("30", "2026-11-16 04:30:00"),
        ("2:30", "2026-11-17 02:30:00"),
        ("8..17:0/30", "2026-11-16 08:00:00"),
        ("*:*:15/15", "2026-11-16 04:07:45"),
        ("sat", "2026-11-21 00:00:00"),
        ("mon..wed,fri 3:00", "2026-11-17 03:00:00"),
        ("sunday 22:15", "2026-11-22 22:15:00"),
        ("02-29 12:00", "2028-02-29 12:00:00"),
        ("2030-01-01", "2030-01-01 00:00:00"),
        ("mon *-1..7 8:00", "2026-12-07 08:00:00"),
        ("2020-01-01", None),
    ],
)
def test_the_next_time_is_that_of_systemd(text: str, following: str | None) -> None:
    found = parse_calendar_event(text).next_after(START.timestamp())
    shown = None if found is None else datetime.datetime.fromtimestamp(found, datetime.UTC)
    assert (None if shown is None else f"{shown:%Y-%m-%d %H:%M:%S}") == following


@pytest.mark.parametrize(
    "text",
    ["", "  ", "25:00", "*/0", "fooday", "sun..mon", "1-2-3-4", "1:2:3:4", "mon 1:00 x", "5..2"],
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(CalendarEventError):
        parse_calendar_event(text)
