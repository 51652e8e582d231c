"""Versions and constraints as OpenTofu reads them: `~> 5.1`, `>= 1.2, < 2.0`, `1.4.0`."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Term", "is_pinned", "major_of", "parse_constraint", "parse_version", "satisfies"]

_TERM = re.compile(
    r"\s*(~>|>=|<=|!=|=|>|<)?\s*v?(\d+(?:\.\d+){0,2})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?\s*"
)
_VERSION = re.compile(r"v?(\d+(?:\.\d+){0,2})(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
PIN = "~>"

Numbers = tuple[int, ...]


class Term(NamedTuple):
    """A part of a constraint.

    Attributes:
        operator: `=` where none is written.
        numbers: One to three.
        suffix: That of a version before its release, with its dash.
    """

    operator: str
    numbers: Numbers
    suffix: str

    @property
    def text(self) -> str:
        """The version of the term."""
        return ".".join(map(str, self.numbers)) + self.suffix


def parse_constraint(text: str) -> tuple[Term, ...] | None:
    """Return the parts of a constraint, None where it is none."""
    found = []
    for part in text.split(","):
        match = _TERM.fullmatch(part)
        if match is None:
            return None
        found.append(Term(match[1] or "=", _numbers(match[2]), match[3] or ""))
    return tuple(found)


def parse_version(text: str) -> tuple[Numbers, str] | None:
    """Return the three numbers of a version and its suffix, None where it is none."""
    match = _VERSION.fullmatch(text.strip())
    return None if match is None else (_fill(_numbers(match[1])), match[2] or "")


def is_pinned(text: str) -> bool:
    """Return whether a constraint has a `~>`."""
    return any(one.operator == PIN for one in parse_constraint(text) or ())


def major_of(numbers: Numbers) -> Numbers:
    """Return what differs between versions that may break code: before 1.0, the minor version counts."""
    major, minor, _ = _fill(numbers)
    return (major, 0) if major else (0, minor)


def satisfies(version: str, constraint: str) -> bool:
    """Return whether a version fits a constraint; one that cannot be read fits nothing."""
    terms, parsed = parse_constraint(constraint), parse_version(version)
    if terms is None or parsed is None:
        return False
    return all(_fits(parsed, term) for term in terms)


def _fits(version: tuple[Numbers, str], term: Term) -> bool:
    numbers, suffix = version
    wanted = _fill(term.numbers)
    # A version before a release fits only where it is named itself.
    if suffix and suffix != term.suffix:
        return term.operator == "!="
    # A version before a release comes before it.
    here, there = (numbers, not suffix), (wanted, not term.suffix)
    if term.operator == PIN:
        # `~> 2` of a provider is `~> 2.0`.
        fixed = max(len(term.numbers) - 1, 1)
        return here >= there and numbers[:fixed] == wanted[:fixed]
    return {
        "=": here == there,
        "!=": here != there,
        ">": here > there,
        ">=": here >= there,
        "<": here < there,
        "<=": here <= there,
    }[term.operator]


def _numbers(text: str) -> Numbers:
    return tuple(int(one) for one in text.split("."))


def _fill(numbers: Numbers) -> Numbers:
    return (*numbers, 0, 0)[:3]
