"""Moments, which a configuration writes as in RFC 3339, and Proxmox as seconds since 1970."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from stackyard.provider.fields import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.provider.values import Object

__all__ = ["MOMENT", "NEVER", "is_moment", "keep_spelling", "read_moment", "same_moment"]

# The moment that means no end.
NEVER = "1970-01-01T00:00:00Z"


def _seconds(text: Any) -> int:
    return int(datetime.datetime.fromisoformat(str(text)).timestamp())


def read_moment(seconds: Any) -> str:
    """Return a moment as text."""
    moment = datetime.datetime.fromtimestamp(int(seconds or 0), datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


MOMENT = Form(write=_seconds, read=read_moment)


def is_moment(value: Any) -> str | None:
    """Check that a text is a moment with its time zone."""
    try:
        moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or "T" not in str(value):
        return "must be a moment such as 2030-12-31T23:59:59Z"
    return None


def same_moment(prior: Any, config: Any) -> bool:
    """Tell whether two texts are one moment, perhaps in two time zones."""
    try:
        return _seconds(prior) == _seconds(config)
    except ValueError:
        return False


def keep_spelling(known: Object, read: Mapping[str, Any], name: str) -> Any:
    """Return a moment that was read, in the spelling that is known for it."""
    before, now = known.get(name), read.get(name)
    return before if before is not None and now is not None and same_moment(before, now) else now
