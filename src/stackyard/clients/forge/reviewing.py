"""Which of many reviews count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stackyard.clients.forge.model import Review, ReviewVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["find_last_verdicts"]


def find_last_verdicts(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Return of each reviewer the last review that says yes or no, or was dismissed.

    Args:
        reviews: All reviews, the oldest first.
    """
    last: dict[str, Review] = {}
    for review in reviews:
        if review.verdict is not ReviewVerdict.COMMENTED:
            last[review.author.casefold()] = review
    return tuple(last.values())
