"""Keys that no one acts on: a misspelt one is an error with what was meant, a foreign one is named.

The contract leaves objects open, so that a site can keep values of its own in them. What is not open is a
typo: `cpu_core` would be accepted and dropped, and the guest would silently get the default.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import re
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Kind, Severity
from stackyard.sources.deployment.schema import load_shipped_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.deployment.text import ObjectText, Path

__all__ = ["NOT_ACTED_ON", "check_words", "find_near_word", "report_ignored"]

MISSPELT = Kind(
    code="E-DEPLOYMENT-MISSPELT",
    summary="A key is almost one that means something",
    remedy="Correct it; a key of your own that looks like this has to begin with `_`.",
)
NOT_ACTED_ON = Kind(
    code="W-DEPLOYMENT-NOT-ACTED-ON",
    summary="Some keys are kept and not acted on",
    remedy="Nothing, if they are for another program; otherwise look for the right name in the schema.",
    severity=Severity.WARNING,
)
_NEAR = 0.8
_SHORTEST = 3
_MOST_SHOWN = 20


def find_near_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that another is a slip of, if there is one."""
    plain = {_plain(name): name for name in known}
    close = difflib.get_close_matches(_plain(word), list(plain), n=1, cutoff=_NEAR)
    # In a short word one letter is too much of it to be close by that measure: `sise` is `size` all the same.
    slips = close or [name for name in plain if _is_one_slip(_plain(word), name)]
    return plain[slips[0]] if slips else None


def _is_one_slip(one: str, other: str) -> bool:
    """Return whether words differ by one letter: another, one more, one less, or two that changed places."""
    if min(len(one), len(other)) < _SHORTEST:
        return False
    start = sum(
        1 for _ in itertools.takewhile(lambda both: both[0] == both[1], zip(one, other, strict=False))
    )
    left, right = one[start:], other[start:]
    swapped = left[1:2] + left[:1] + left[2:]
    return right in (left[1:], swapped) or left == right[1:] or left[1:] == right[1:]


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")


def check_words(document: ObjectText, data: Mapping[str, Any], found: Diagnostics) -> list[Path]:
    """Report every key, at any depth, that is a slip of one that the schema knows; return other unknown ones.

    Args:
        document: The object as it was written, for the places.
        data: What it says, without comments.
        found: Takes the findings.
    """
    ignored: list[Path] = []
    for path, known in _unknown(data, load_shipped_schema(), ()):
        meant = find_near_word(str(path[-1]), known)
        if meant is None:
            ignored.append(path)
            continue
        text = f"`{'.'.join(map(str, path))}` means nothing. Did you mean `{meant}`?"
        found.add(MISSPELT, text, document.place(path))
    return ignored


def report_ignored(document: ObjectText, ignored: Sequence[Path], found: Diagnostics) -> None:
    """Report the keys that nothing is done with, all in one finding."""
    if ignored:
        shown = ", ".join(".".join(map(str, path)) for path in ignored[:_MOST_SHOWN])
        more = f" and {len(ignored) - _MOST_SHOWN} more" if len(ignored) > _MOST_SHOWN else ""
        text = f"stackyard does nothing with {shown}{more}."
        found.add(NOT_ACTED_ON, text, document.place(ignored[0]))


def _unknown(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """Return each key that no schema names, with those that could have been meant."""
    if isinstance(value, list):
        items = schema.get("items")
        if items is not None:
            for place, one in enumerate(value):
                yield from _unknown(one, _follow_reference(items), (*path, place))
        return
    if not isinstance(value, dict):
        return
    fields = _fields(schema)
    others = schema.get("additionalProperties")
    patterns = [(_compile(text), part) for text, part in schema.get("patternProperties", {}).items()]
    for key, inner in value.items():
        part = fields.get(key)
        if part is None:
            part = next((part for pattern, part in patterns if pattern.search(key)), None)
        if part is None and isinstance(others, dict):
            part = others
        if part is None:
            # An object whose fields no one names is open as a whole.
            if fields:
                yield (*path, key), frozenset(fields)
        elif part.get("x-stackyard") == "ignored":
            yield (*path, key), frozenset()
        elif isinstance(inner, dict | list):
            yield from _unknown(inner, _follow_reference(part), (*path, key))


@functools.cache
def _compile(text: str) -> re.Pattern[str]:
    return re.compile(text)


def _fields(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = schema.get("properties", {})
    return fields


def _follow_reference(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part of the schema refers to; of several, the first that has fields."""
    reference = schema.get("$ref")
    if reference is not None:
        part: Mapping[str, Any] = load_shipped_schema()["definitions"][reference.rpartition("/")[2]]
        return part
    for one in (*schema.get("allOf", ()), *schema.get("anyOf", ())):
        inner = _follow_reference(one)
        if inner.get("properties"):
            return inner
    return schema
