"""What must not be shown in a pull request: values that are known to be secret, and what looks like one.

A plan names secrets by its sensitivity, and the run that made it masked them. This is the second look: a
secret that somebody wrote into a plain value is masked because no word and no number looks like it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

from stackyard.base.redaction import MASK, Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Mask", "looks_secret"]

# Runs of characters that tokens, keys and hashes are made of.
_RUN = re.compile(r"[A-Za-z0-9+/_=-]{20,}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_WORDS = re.compile(r"[a-z]+|[A-Z][a-z]*|[0-9]+")
# Bits for each character: random text of 20 characters has more than 3.6, names and paths have less.
_LEAST_BITS = 3.6
# Of a text of 16 signs random characters have less.
_LEAST_BITS_OF_HEX = 3.0
_SHORTEST_HEX = 32
# A name is made of parts, none of which is this long.
_SEPARATORS = re.compile(r"[-_/=]")
_LONGEST_PART = 16
# A name is made of words: on average each has more letters than this.
_LETTERS_OF_A_WORD = 2.6
_KNOWN_BEGINNINGS = re.compile(
    r"(?:AKIA|ASIA)[A-Z0-9]{16}|gh[pousr]_[A-Za-z0-9]{20,}|glpat-[A-Za-z0-9_-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]+"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|-----BEGIN [A-Z ]*PRIVATE KEY-----|\$(?:2[aby]|5|6|y)\$[^\s\"']{12,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
)


class Mask:
    """Replaces secrets in a text.

    Args:
        secrets: The values that are known.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._redactor = Redactor(secrets)

    def __call__(self, text: str) -> str:
        """Return the text with every secret masked, and whatever looks like one."""
        shown = _KNOWN_BEGINNINGS.sub(MASK, self._redactor(text))
        return _RUN.sub(lambda found: MASK if looks_secret(found[0]) else found[0], shown)


def looks_secret(text: str) -> bool:
    """Return whether a run of characters is more likely random than a name."""
    if _HEX.fullmatch(text) and not text.replace("-", "").isdigit():
        digits = text.replace("-", "")
        # A UUID names something; it is none where its groups have other lengths.
        is_uuid = [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12]
        return len(digits) >= _SHORTEST_HEX and not is_uuid and _bits(digits.lower()) >= _LEAST_BITS_OF_HEX
    parts = _SEPARATORS.split(text)
    if len(parts) > 2 and max(map(len, parts)) < _LONGEST_PART:
        return False
    words = _WORDS.findall(text)
    letters = sum(map(len, words))
    is_of_words = bool(words) and letters / len(words) > _LETTERS_OF_A_WORD
    return not is_of_words and _bits(text) >= _LEAST_BITS


def _bits(text: str) -> float:
    """Return the entropy of the characters of a text."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
