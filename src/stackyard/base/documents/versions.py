"""Semantic versions, and steps between them: before 1.0, a step of the minor number counts as a major one."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["Version", "is_major_step", "major_line"]

# No number or word in a version is longer than this; one that is would not even fit into a file's name.
_VERSION = re.compile(
    r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]{1,60})?", re.ASCII
)


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version; a pre-release comes before its release, build metadata does not count."""

    major: int
    minor: int
    patch: int
    prerelease: str = ""

    @classmethod
    def parse(cls, text: str) -> Version:
        """Read `1.12.6`, `v1.12.6` or `1.12.0-rc1`.

        Raises:
            ValueError: The text is not a version.
        """
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a version such as 1.12.6")
        major, minor, patch, prerelease = match.groups()
        return cls(int(major), int(minor), int(patch), prerelease or "")

    def __str__(self) -> str:
        number = f"{self.major}.{self.minor}.{self.patch}"
        return f"{number}-{self.prerelease}" if self.prerelease else number

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() < other._key()

    def _key(self) -> tuple[Any, ...]:
        # Numeric identifiers sort below words, and as numbers: rc.2 before rc.10.
        identifiers = tuple(
            (0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease.split(".")
        )
        return (self.major, self.minor, self.patch, not self.prerelease, identifiers)


def major_line(version: Version) -> tuple[int, ...]:
    """Return what versions of one major step have in common: `(5,)`, or `(0, 86)` before 1.0."""
    return (version.major,) if version.major else (0, version.minor)


def is_major_step(old: Version, new: Version) -> bool:
    """Return whether two versions are a major step apart."""
    return major_line(old) != major_line(new)
