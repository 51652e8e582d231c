"""Masking of secret values in text that leaves the process: logs, errors, events.

It knows values, not where they come from: whoever reads a secret adds it to the `Redactor` that it passes on.
"""

from __future__ import annotations

import re
import urllib.parse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MASK", "NOTHING_SECRET", "Redactor"]

MASK = "********"

# A shorter value would blank out ordinary words and tell nobody anything.
_SHORTEST_SECRET = 4


class Redactor:
    """Replaces secret values by a mask, in their plain and their URL-encoded spelling.

    Args:
        secrets: The values to hide. Values under four characters are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        values: set[str] = set()
        for secret in secrets:
            values.update(_spellings(secret))
        self._values = frozenset(values)
        # The longest first, so that a secret that contains another one is masked whole.
        ordered = sorted(values, key=lambda value: (-len(value), value))
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        """Return the text with every secret masked."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def hides(self, text: str) -> bool:
        """Tell whether the text holds a secret."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that hides these as well."""
        return Redactor([*self._values, *secrets])


def _spellings(secret: str) -> set[str]:
    """Return the ways in which a secret shows up in text, each line of a multi-line one by itself too."""
    whole = secret.strip()
    candidates = {whole, *(line.strip() for line in whole.splitlines())}
    candidates |= {urllib.parse.quote(value, safe="") for value in candidates}
    return {value for value in candidates if len(value) >= _SHORTEST_SECRET}


NOTHING_SECRET = Redactor()
