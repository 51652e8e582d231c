"""Replacing single bytes of a file, with all others as they were: comments, formatting, line ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Edit", "apply_edits"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Bytes to replace.

    Attributes:
        start: Where they begin.
        end: Where they end.
        text: What replaces them.
        old: What they have to be; anything when absent.
    """

    start: int
    end: int
    text: str
    old: str | None = None


def apply_edits(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return a file with some of its bytes replaced.

    Raises:
        ValueError: Two edits overlap, one is outside of the file, or the bytes are others than expected.
    """
    parts, at = [], 0
    for edit in sorted(set(edits)):
        if edit.start < at or not edit.start <= edit.end <= len(data):
            raise ValueError("edits overlap, or are outside of the file")
        if edit.old is not None and data[edit.start : edit.end] != edit.old.encode():
            raise ValueError("the file has changed")
        parts += [data[at : edit.start], edit.text.encode()]
        at = edit.end
    return b"".join((*parts, data[at:]))
