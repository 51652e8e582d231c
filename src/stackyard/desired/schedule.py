"""Schedules of Proxmox: the part of systemd's calendar events that it reads."""

from __future__ import annotations

import calendar
import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

__all__ = ["Schedule", "check_schedule"]

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL_DAYS = tuple(day.lower() for day in calendar.day_name)
_WORDS = frozenset(
    "minutely hourly daily weekly monthly quarterly semiannually semi-annually yearly annually".split()
)
_WEEKDAYS = re.compile(r"[a-z]+(?:\.\.[a-z]+)?(?:,[a-z]+(?:\.\.[a-z]+)?)*", re.IGNORECASE)
_PART = re.compile(r"(\*|\d{1,4})(?:\.\.(\d{1,4}))?(?:/(\d{1,4}))?")
_YEARS = (1970, 2199)
# Days that no month has, whatever the year.
_LONGEST_MONTHS = {month: 29 if month == 2 else calendar.monthrange(2001, month)[1] for month in range(1, 13)}
_EXAMPLES = "such as `*/15`, `daily`, `mon..fri 22:30` or `sat *-1..7 04:00`"


def check_schedule(text: str) -> str:
    """Return a schedule as it is written.

    Raises:
        ValueError: It is none, or one for a day that never comes.
    """
    words = text.strip().removesuffix("UTC").split()
    if words and words[0] in _WORDS and len(words) == 1:
        return text
    if not words:
        raise ValueError(f"a schedule is empty: write one {_EXAMPLES}")
    if _WEEKDAYS.fullmatch(words[0]):
        _check_weekdays(words.pop(0))
    if words and "-" in words[0]:
        _check_date(words.pop(0))
    if words:
        _check_time(words.pop(0))
    if words:
        raise ValueError(f"`{words[0]}` is too much in a schedule: weekdays, a date and a time, {_EXAMPLES}")
    return text


def _check_weekdays(text: str) -> None:
    for part in text.lower().split(","):
        first, _, last = part.partition("..")
        numbers = [_weekday(day) for day in (first, last or first)]
        if numbers[0] > numbers[1]:
            raise ValueError(f"`{part}` goes backwards: a week begins on Monday")


def _weekday(day: str) -> int:
    for names in (_DAYS, _FULL_DAYS):
        if day in names:
            return names.index(day)
    raise ValueError(f"`{day}` is no weekday and no word of a schedule: write one {_EXAMPLES}")


def _check_date(text: str) -> None:
    parts = text.split("-")
    if len(parts) not in (2, 3):
        raise ValueError(f"`{text}` is no date of a schedule: year-month-day or month-day, each may be `*`")
    days, months = _values(parts[-1], 1, 31, "day"), _values(parts[-2], 1, 12, "month")
    if len(parts) == 3:
        years = _values(parts[0], *_YEARS, "year")
        is_leap = any(map(calendar.isleap, years))
    else:
        is_leap = True
    longest = max(29 - (not is_leap) if month == 2 else _LONGEST_MONTHS[month] for month in months)
    if min(days) > longest:
        raise ValueError(f"`{text}` is a day that never comes")


def _check_time(text: str) -> None:
    parts = text.split(":")
    if len(parts) > 3:
        raise ValueError(f"`{text}` is no time of a schedule: hour:minute, each may be `*`")
    if len(parts) == 1:
        _values(parts[0], 0, 59, "minute")
        return
    for part, (last, what) in zip(parts, ((23, "hour"), (59, "minute"), (59, "second")), strict=False):
        _values(part, 0, last, what)


def _values(text: str, lowest: int, highest: int, what: str) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"`{part}` is no {what} of a schedule: write one {_EXAMPLES}")
        first, last, step = match.groups()
        start = lowest if first == "*" else int(first)
        end = int(last) if last else (highest if first == "*" or step else start)
        if not lowest <= start <= end <= highest or step == "0":
            raise ValueError(f"`{part}` is no {what}: {lowest} to {highest}, the smaller first")
        found.update(range(start, end + 1, int(step or 1)))
    return found


Schedule = Annotated[str, StringConstraints(max_length=128), AfterValidator(check_schedule)]
