"""Masking of secret values in text that leaves the process: logs, errors, events.

It knows values, not where they come from: whoever reads a secret adds it to the `Redactor` that it passes on.
"""

from __future__ import annotations

import base64
import html
import json
import re
import urllib.parse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["MASK", "NOTHING_SECRET", "Redactor"]

MASK = "********"

# A shorter value would blank out ordinary words and tell no one anything.
_SHORTEST_SECRET = 4
# JSON in JSON in JSON: what a provider's message looks like in the log of a program that we run.
_JSON_LEVELS = 3


class Redactor:
    """Replaces secret values by a mask, however text spells them.

    A value is found as it is, URL-encoded, escaped for JSON (three levels deep), for HTML or for a shell, and
    in base64. A value of several lines is found as a whole and line by line. Where values overlap, all of it
    is masked.

    Args:
        secrets: The values to hide. Space around a value does not count; under four characters it is ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._set(frozenset(secrets), frozenset())

    def _set(self, secrets: frozenset[str], known: frozenset[str]) -> None:
        self._spellings = known | {text for secret in secrets for text in _spellings(secret)}
        # Only a secret that holds the mask's own character can appear again in masked text.
        self._may_reappear = any(MASK[0] in text for text in self._spellings)
        # Secrets are many (every guest has some) and texts short: so they are looked up by how they begin.
        self._width = min(map(len, self._spellings), default=1)
        self._by_beginning: dict[str, list[str]] = {}
        for text in self._spellings:
            self._by_beginning.setdefault(text[: self._width], []).append(text)

    def __call__(self, text: str) -> str:
        """Return the text with every secret masked."""
        masked = self._mask(text)
        while self._may_reappear and masked != text:
            text, masked = masked, self._mask(masked)
        return masked

    def hides(self, text: str) -> bool:
        """Return whether the text holds a secret."""
        return next(self._spans(text), None) is not None

    def with_secrets(self, secrets: Iterable[str]) -> Redactor:
        """Return a redactor that hides these as well."""
        more = Redactor()
        more._set(frozenset(secrets), self._spellings)
        return more

    def _mask(self, text: str) -> str:
        parts: list[str] = []
        end = 0
        for span_start, span_end in _join_spans(sorted(self._spans(text))):
            parts += (text[end:span_start], MASK)
            end = span_end
        return "".join([*parts, text[end:]])

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Find every place of every secret, those inside one another too."""
        width, beginnings = self._width, self._by_beginning
        for start in range(len(text) - width + 1):
            for spelling in beginnings.get(text[start : start + width], ()):
                if text.startswith(spelling, start):
                    yield start, start + len(spelling)


def _join_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join ordered spans that overlap or touch."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current


def _spellings(secret: str) -> Iterator[str]:
    """Return the ways in which a secret shows up in text."""
    unix = secret.strip().replace("\r\n", "\n")
    wholes = {secret.strip(), unix, unix.replace("\n", "\r\n")}
    for whole in wholes:
        if len(whole) >= _SHORTEST_SECRET:
            yield from _base64_cores(_utf8(whole))
    for part in {*wholes, *(line.strip() for line in unix.splitlines())}:
        if len(part) >= _SHORTEST_SECRET:
            yield part
            if _PLAIN.fullmatch(part):
                continue
            # What is left of bytes that are not UTF-8, once a program's output has been decoded.
            yield _utf8(part).decode(errors="replace")
            yield from _url_spellings(_utf8(part))
            if not _UNQUOTED.fullmatch(part):
                yield from _list_quoted_forms(part)


# Spelled the same by everyone.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)
# Spelled the same in quotes of every kind, as base64 is.
_UNQUOTED = re.compile(r"[A-Za-z0-9_.+/=-]+", re.ASCII)
# Left alone by encoders: nothing; Python's paths; Go's path segments and user names; all of JavaScript's.
_URL_SAFE = ("", "/", "$&+=:@", "$&+,;=", "!*'()")


def _url_spellings(data: bytes) -> Iterator[str]:
    for safe in _URL_SAFE:
        encoded = urllib.parse.quote_from_bytes(data, safe)
        lowered = re.sub("%..", lambda found: found[0].lower(), encoded)
        # Forms write a space as a plus sign.
        yield from (encoded, lowered, encoded.replace("%20", "+"), lowered.replace("%20", "+"))


_GO_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
# The last is Go's, and so OpenTofu's, which also escapes what would mean something in HTML.
_JSON_SPELLINGS: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1].translate(_GO_ESCAPES),
)


def _list_quoted_forms(part: str) -> Iterator[str]:
    for spell in _JSON_SPELLINGS:
        level = part
        for _ in range(_JSON_LEVELS):
            level = spell(level)
            yield level
    yield repr(part)[1:-1]
    in_html = html.escape(part)
    yield from (in_html, in_html.replace("&#x27;", "&#39;").replace("&quot;", "&#34;"))
    # In single quotes a shell needs either of these for a single quote.
    yield from (part.replace("'", "'\"'\"'"), part.replace("'", "'\\''"))


def _utf8(text: str) -> bytes:
    """Return the bytes of a text, which may hold undecodable ones from the environment."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def _base64_cores(data: bytes) -> Iterator[str]:
    """Return what base64 of any text with these bytes in it contains, wherever in it they start."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data).decode()
        # The characters at both ends hold bits of the neighbouring bytes.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        core = encoded[first:last]
        yield from (core, core.replace("+", "-").replace("/", "_"))


NOTHING_SECRET = Redactor()
