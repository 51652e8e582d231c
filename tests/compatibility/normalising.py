"""Rules that replace what is different in every run by fixed words; each rule names one kind of value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Names", "normalised"]

# Each is numbered in the order of its appearance, so that the same value has the same word everywhere.
NUMBERED = {
    "mac": re.compile(r"\b(?:BC:24:11(?::[0-9A-F]{2}){3}|bc:24:11(?::[0-9a-f]{2}){3})\b"),
    "uuid": re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    "digest": re.compile(r"\b[0-9a-f]{40}\b"),
    "fingerprint": re.compile(r"\b[0-9A-F]{2}(?::[0-9A-F]{2}){31}\b"),
    "sha256": re.compile(r"\b[0-9a-f]{64}\b"),
}
# Whether two of these are the same is chance.
ALIKE = frozenset({"time", "port"})
# A task: who did what to whom stays; its number and its times go.
UPID = re.compile(r"UPID:([^:\s]+):[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:([^:\s]+):([^:\s]*):([^:\s]+):")

Unstable = Callable[[str, Any], str | None]


def _stable(name: str, value: Any) -> str | None:
    del name, value
    return None


class Names:
    """The words that stand for values of one recording.

    Args:
        texts: Parts of texts that are replaced before all rules, such as an address, by their words.
        patterns: More kinds of values.
    """

    def __init__(
        self, texts: Mapping[str, str] | None = None, patterns: Mapping[str, re.Pattern[str]] | None = None
    ) -> None:
        self._patterns = dict(patterns or {})
        self._texts = dict(sorted((texts or {}).items(), key=lambda item: -len(item[0])))
        self._known: dict[str, dict[str, str]] = {}

    def text(self, text: str) -> str:
        """Return a text with all rules applied."""
        for part, word in self._texts.items():
            text = text.replace(part, word)
        text = UPID.sub(r"UPID:\1:PID:START:TIME:\2:\3:\4:", text)
        for kind, pattern in (NUMBERED | self._patterns).items():
            text = pattern.sub(self._word(kind), text)
        return text

    def _word(self, kind: str) -> Callable[[re.Match[str]], str]:
        known = self._known.setdefault(kind, {})
        if kind in ALIKE:
            return lambda found: f"<{kind}>"
        return lambda found: known.setdefault(found[0], f"<{kind} {len(known) + 1}>")


def normalised(value: Any, names: Names, fields: Mapping[str, str], unstable: Unstable = _stable) -> Any:
    """Return a document with all rules applied.

    Args:
        value: What JSON can say.
        names: The rules for texts.
        fields: Words for whole values, by the name of their field; a value of None stays.
        unstable: Returns the word for the value of a field, where it is different in every run.
    """
    if isinstance(value, dict):
        return {
            names.text(key): f"<{word}>"
            if (word := _word(key, inner, fields, unstable))
            else normalised(inner, names, fields, unstable)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [normalised(inner, names, fields, unstable) for inner in value]
    return names.text(value) if isinstance(value, str) else value


def _word(key: str, value: Any, fields: Mapping[str, str], unstable: Unstable) -> str | None:
    return None if value is None else fields.get(key) or unstable(key, value)
