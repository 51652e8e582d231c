"""Version constraints as OpenTofu reads them: `~> 1.2`, `>= 1.0, != 1.4.1, < 2.0`, `1.2.3`.

Both engines take a pre-release only where a constraint names exactly that one (`= 1.3.0-beta1`).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stackyard.base.documents.versions import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Constraint",
    "ConstraintError",
    "Operator",
    "Term",
    "is_pinned",
    "parse_constraint",
    "read_constraint",
    "satisfies",
]

_LONGEST = 1000
_TERM = re.compile(
    r"\s*(?P<operator>=|!=|>=|<=|>|<|~>)?\s*"
    r"(?P<version>(?P<major>\d{1,9})(?:\.(?P<minor>\d{1,9})(?:\.(?P<patch>\d{1,9}))?)?"
    r"(?:-(?P<prerelease>[0-9A-Za-z.-]{1,60}))?(?:\+[0-9A-Za-z.-]{1,60})?)\s*",
    re.ASCII,
)


class ConstraintError(ValueError):
    """A text is no version constraint."""


class Operator(enum.StrEnum):
    """How a term compares."""

    EQUAL = "="
    NOT_EQUAL = "!="
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="
    PESSIMISTIC = "~>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One part of a constraint.

    Attributes:
        operator: How it compares.
        version: What it compares with; numbers that are left out are 0.
        width: How many numbers are written.
        start: Where the version begins in the text of the constraint.
        end: Where it ends.
    """

    operator: Operator
    version: Version
    width: int
    start: int
    end: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers that are written, one to three."""
        return (self.version.major, self.version.minor, self.version.patch)[: self.width]

    @property
    def text(self) -> str:
        """The version with the numbers that are written."""
        suffix = f"-{self.version.prerelease}" if self.version.prerelease else ""
        return ".".join(map(str, self.numbers)) + suffix

    def allows(self, version: Version) -> bool:
        """Return whether a version fits, pre-releases aside."""
        own = self.version
        match self.operator:
            case Operator.EQUAL:
                return version == own
            case Operator.NOT_EQUAL:
                return version != own
            case Operator.GREATER:
                return version > own
            case Operator.AT_LEAST:
                return version >= own
            case Operator.LESS:
                return version < own
            case Operator.AT_MOST:
                return version <= own
        kept = (version.major, version.minor)[: max(1, self.width - 1)]
        return version >= own and kept == (own.major, own.minor)[: len(kept)]

    def spell(self, version: Version) -> str:
        """Return a version with as many numbers as the term has; one of a pre-release is whole."""
        if version.prerelease or self.operator is Operator.EQUAL:
            return str(version)
        return ".".join(str(version).split(".")[: self.width])


@dataclass(frozen=True, slots=True)
class Constraint:
    """A version constraint: every term has to fit."""

    text: str
    terms: tuple[Term, ...]

    @property
    def base(self) -> Version | None:
        """The version that it starts from: the newest that a lower bound or an exact term names."""
        lower = (Operator.EQUAL, Operator.AT_LEAST, Operator.PESSIMISTIC, Operator.GREATER)
        return max((term.version for term in self.terms if term.operator in lower), default=None)

    @property
    def is_exact(self) -> bool:
        """Whether it names one version."""
        return any(term.operator is Operator.EQUAL for term in self.terms)

    @property
    def is_pessimistic(self) -> bool:
        """Whether it has a term with `~>`, which an upgrade raises."""
        return any(term.operator is Operator.PESSIMISTIC for term in self.terms)

    def allows(self, version: Version) -> bool:
        """Return whether the engine would take a version."""
        if version.prerelease and not any(
            term.operator is Operator.EQUAL and term.version == version for term in self.terms
        ):
            return False
        return all(term.allows(version) for term in self.terms)

    def newest(self, versions: Iterable[Version]) -> Version | None:
        """Return the newest version that it allows."""
        return max(filter(self.allows, versions), default=None)

    def raise_to(self, version: Version) -> str | None:
        """Return the text with its `~>` and exact terms at a version, everything else as it is.

        None where the other terms do not allow that version, or where it would be lowered.
        """
        text = self.text
        for term in reversed(self.terms):
            if term.operator in (Operator.PESSIMISTIC, Operator.EQUAL):
                if term.version > version:
                    return None
                text = f"{text[: term.start]}{term.spell(version)}{text[term.end :]}"
        return text if parse_constraint(text).allows(version) else None


def parse_constraint(text: str) -> Constraint:
    """Read a constraint.

    Raises:
        ConstraintError: It is none; both engines refuse it too.
    """
    if len(text) > _LONGEST:
        raise ConstraintError("it is longer than any constraint")
    terms, at = [], 0
    while True:
        match = _TERM.match(text, at)
        if match is None:
            raise ConstraintError(f"`{text}` is not a version constraint such as `~> 1.2`")
        terms.append(_term(match))
        at = match.end()
        if at == len(text):
            return Constraint(text, tuple(terms))
        if text[at] != ",":
            raise ConstraintError(f"`{text}` is not a version constraint: terms have commas between them")
        at += 1


def read_constraint(text: str) -> Constraint | None:
    """Return a constraint, None where a text is none."""
    try:
        return parse_constraint(text)
    except ConstraintError:
        return None


def is_pinned(text: str) -> bool:
    """Return whether a text is a constraint with `~>`."""
    found = read_constraint(text)
    return found is not None and found.is_pessimistic


def satisfies(version: str, text: str) -> bool:
    """Return whether a version fits a constraint; what cannot be read fits nothing."""
    found = read_constraint(text)
    try:
        return found is not None and found.allows(Version.parse(version))
    except ValueError:
        return False


def _term(match: re.Match[str]) -> Term:
    numbers = [match[name] for name in ("major", "minor", "patch")]
    major, minor, patch = (int(one or 0) for one in numbers)
    return Term(
        operator=Operator(match["operator"] or "="),
        version=Version(major, minor, patch, match["prerelease"] or ""),
        width=sum(one is not None for one in numbers),
        start=match.start("version"),
        end=match.end("version"),
    )
