"""Names, texts and times as forges want them."""

from __future__ import annotations

import urllib.parse
from datetime import UTC, datetime

from stackyard.clients.forge.failures import ForgeAnswerError

__all__ = ["cut_text", "is_same_text", "quote", "read_time"]

_CUT = "…"


def quote(name: str) -> str:
    """Return a name as one part of a path."""
    # `.` and `..` would be taken for folders.
    return urllib.parse.quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def cut_text(text: str, characters: int) -> str:
    """Return the beginning of a text that is too long."""
    return text if len(text) <= characters else text[: characters - len(_CUT)] + _CUT


def is_same_text(one: str, other: str) -> bool:
    """Return whether two texts differ in blanks and ends of lines at most, which forges change."""
    return one.split() == other.split()


def read_time(text: str) -> datetime:
    """Return a time as forges write it.

    Raises:
        ForgeAnswerError: It is none.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ForgeAnswerError("The forge answers with a time that is none.") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
