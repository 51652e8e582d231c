"""Versions of programs that do not write theirs as three numbers and no more."""

from __future__ import annotations

import re

from stackyard.engine.version import Version

__all__ = ["read"]

_NUMBERS = re.compile(r"(?:v|go)?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)


def read(text: str) -> Version | None:
    """Return a version from its text, or nothing when the text does not start as one.

    Where it is no semantic version (`2.47.1.windows.1`, `9.2p1`, `go1.26`), only its numbers count.
    """
    try:
        return Version.parse(text)
    except ValueError:
        match = _NUMBERS.match(text)
    if match is None:
        return None
    major, minor, patch = match.groups(default="0")
    return Version(int(major), int(minor), int(patch))
