"""Which of many versions are newer than another one, by patch, minor and major step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.versions import Version, is_major_step

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Newer", "find_newer", "newest", "parse_versions"]

# More than any provider has published; the rest of a longer answer is not looked at.
_MOST_VERSIONS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Newer:
    """Versions that are newer than the current one.

    Attributes:
        patch: The newest with the same major and minor number.
        minor: The newest of a later minor number, within the same major version.
        major: The newest of a later major version.
    """

    patch: Version | None = None
    minor: Version | None = None
    major: Version | None = None

    @property
    def compatible(self) -> Version | None:
        """The newest within the same major version."""
        return self.minor or self.patch

    def __bool__(self) -> bool:
        return any((self.patch, self.minor, self.major))


def parse_versions(texts: Iterable[object]) -> tuple[Version, ...]:
    """Return the versions among texts from outside, sorted, each once; anything else is left out."""
    found: set[Version] = set()
    for text in texts:
        if not isinstance(text, str):
            continue
        try:
            found.add(Version.parse(text))
        except ValueError:
            continue
        if len(found) >= _MOST_VERSIONS:
            break
    return tuple(sorted(found))


def newest(versions: Iterable[Version]) -> Version | None:
    """Return the newest release; a pre-release is none."""
    return max((one for one in versions if not one.prerelease), default=None)


def find_newer(current: Version, available: Iterable[Version]) -> Newer:
    """Return what is newer than a version; pre-releases count only for one that is a pre-release itself."""
    later = [one for one in available if one > current and _counts(current, one)]
    same = [one for one in later if not is_major_step(current, one)]
    return Newer(
        patch=max((one for one in same if one.minor == current.minor), default=None),
        minor=max((one for one in same if one.minor != current.minor), default=None),
        major=max((one for one in later if is_major_step(current, one)), default=None),
    )


def _counts(current: Version, other: Version) -> bool:
    if not other.prerelease:
        return True
    own = (current.major, current.minor, current.patch)
    return bool(current.prerelease) and own == (other.major, other.minor, other.patch)
