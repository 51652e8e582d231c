"""The names of the records of runs.

A name begins with the time that is left until a day in the far future, so that the newest comes first in a
list of the store; it also says what the run was and on which state, so that a list need not open records that
no one asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackyard.state.names import name_of

__all__ = ["RECORDS", "ListedRecord", "begin_record_key", "parse_record_key"]

RECORDS = "records/"
# Microseconds since 1970 of a day in the year 5138.
_FAR = 10**17
_KEY = re.compile(r"records/(\d{17})-([0-9a-f]{12}),([a-z]+),(.+)")


@dataclass(frozen=True, slots=True)
class ListedRecord:
    """A record in a list, as its name tells it."""

    key: str
    started_at: float
    id: str
    verb: str
    state: str


def parse_record_key(key: str) -> ListedRecord | None:
    """Return what the name of a record tells; None where it is not one."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    started_at = (_FAR - int(match[1])) / 1_000_000
    return ListedRecord(key, started_at, match[2], match[3], name_of(match[4]))


def begin_record_key(at: float) -> str:
    """Return what the names of records begin with whose runs began at a time; older ones come behind it."""
    return f"{RECORDS}{_FAR - int(at * 1_000_000):017d}"
