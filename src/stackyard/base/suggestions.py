"""What someone who mistyped a name may have meant: one wording for every message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a word, if one is close."""
    return next(iter(_close(word, known, most=1)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean `a` or `b`?", or nothing where no known name is close."""
    close = _close(word, known, most=3)
    return f" Did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else ""


def _close(word: str, known: Iterable[str], *, most: int) -> list[str]:
    import difflib  # lazy: for those who mistype

    return difflib.get_close_matches(word, list(known), n=most)
