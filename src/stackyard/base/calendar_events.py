"""Calendar events: the times at which jobs run, written as `daily`, `*/15`, `mon..fri 02:30`, `*-01 4:00`.

A part of systemd's format, as Proxmox reads it. Times are in UTC.
"""

from __future__ import annotations

import calendar
import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CalendarEvent", "CalendarEventError", "parse_calendar_event"]

Values = frozenset[int]

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WORDS = {
    "minutely": "*:*",
    "hourly": "*:00",
    "daily": "00:00",
    "weekly": "mon 00:00",
    "monthly": "*-01 00:00",
    "quarterly": "01,04,07,10-01 00:00",
    "semiannually": "01,07-01 00:00",
    "semi-annually": "01,07-01 00:00",
    "yearly": "01-01 00:00",
    "annually": "01-01 00:00",
}
_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_PART = re.compile(r"(\*|\d{1,4})(?:\.\.(\d{1,4}))?(?:/(\d{1,4}))?")
_DAYS = re.compile(r"[a-z]+(?:\.\.[a-z]+)?(?:,[a-z]+(?:\.\.[a-z]+)?)*", re.IGNORECASE)


class CalendarEventError(ValueError):
    """A text is no calendar event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarEvent:
    """The times that fit; an empty set of weekdays means all of them."""

    weekdays: Values
    years: Values
    months: Values
    days: Values
    hours: Values
    minutes: Values
    seconds: Values

    def next_after(self, moment: float) -> int | None:
        """Return the first time after a moment, None if there is none any more."""
        start = int(moment) + 1
        if start < 0:
            start = 0
        first = datetime.datetime.fromtimestamp(min(start, 2**33), datetime.UTC)
        for day in self._dates(first.date()):
            floor = first.time() if day == first.date() else datetime.time(0)
            found = self._time_from(floor)
            if found is not None:
                return int(datetime.datetime.combine(day, found, datetime.UTC).timestamp())
        return None

    def _dates(self, first: datetime.date) -> Iterable[datetime.date]:
        """Yield the days that fit, from a first one on."""
        for year in sorted(year for year in self.years if year >= first.year):
            for month in sorted(self.months):
                if (year, month) < (first.year, first.month):
                    continue
                for number in range(1, calendar.monthrange(year, month)[1] + 1):
                    day = datetime.date(year, month, number)
                    fits = number in self.days and (not self.weekdays or day.weekday() in self.weekdays)
                    if fits and day >= first:
                        yield day

    def _time_from(self, floor: datetime.time) -> datetime.time | None:
        for hour in sorted(one for one in self.hours if one >= floor.hour):
            for minute in sorted(self.minutes):
                for second in sorted(self.seconds):
                    found = datetime.time(hour, minute, second)
                    if found >= floor:
                        return found
        return None


def parse_calendar_event(text: str) -> CalendarEvent:
    """Read a calendar event.

    Raises:
        CalendarEventError: It is none.
    """
    rest = text.strip().removesuffix("UTC").strip()
    rest = _WORDS.get(rest, rest)
    words = rest.split()
    weekdays: Values = frozenset()
    if words and _DAYS.fullmatch(words[0]):
        weekdays = _weekdays(words.pop(0))
    elif not words:
        raise CalendarEventError("unable to parse calendar event - event is empty")
    date = _date(words.pop(0)) if words and "-" in words[0] else _date("*-*-*")
    time = _time(words.pop(0)) if words else _time("00:00:00")
    if words:
        raise CalendarEventError(f"unable to parse calendar event at '{words[0]}'")
    return CalendarEvent(
        weekdays=weekdays,
        years=date[0],
        months=date[1],
        days=date[2],
        hours=time[0],
        minutes=time[1],
        seconds=time[2],
    )


def _weekdays(text: str) -> Values:
    found: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("..")
        start, end = _weekday(first), _weekday(last or first)
        if start > end:
            raise CalendarEventError(f"unable to parse weekday range '{part}'")
        found.update(range(start, end + 1))
    return frozenset(found)


def _weekday(text: str) -> int:
    for names in (_WEEKDAYS, _FULL):
        if text in names:
            return names.index(text)
    raise CalendarEventError(f"unable to parse weekday '{text}'")


def _date(text: str) -> tuple[Values, Values, Values]:
    parts = text.split("-")
    if len(parts) == 2:
        parts = ["*", *parts]
    if len(parts) != 3:
        raise CalendarEventError(f"unable to parse date '{text}'")
    years = _values(parts[0], _FIRST_YEAR, _LAST_YEAR)
    return years, _values(parts[1], 1, 12), _values(parts[2], 1, 31)


def _time(text: str) -> tuple[Values, Values, Values]:
    parts = text.split(":")
    if len(parts) == 1:
        parts = ["*", *parts]
    if len(parts) == 2:
        parts = [*parts, "0"]
    if len(parts) != 3:
        raise CalendarEventError(f"unable to parse time '{text}'")
    return _values(parts[0], 0, 23), _values(parts[1], 0, 59), _values(parts[2], 0, 59)


def _values(text: str, lowest: int, highest: int) -> Values:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise CalendarEventError(f"unable to parse '{part}'")
        first, last, step = match.groups()
        start = lowest if first == "*" else int(first)
        end = int(last) if last else (highest if first == "*" or step else start)
        if not lowest <= start <= end <= highest or (step and not int(step)):
            raise CalendarEventError(f"value '{part}' is out of range")
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)
