"""Reading JSON from outside.

orjson reads it. It stops at 1,024 levels by itself, which is more than functions that call themselves for
each level can take: so that the depth is checked here too. What is refused is an error of orjson's own kind,
a `ValueError` with line and column.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import orjson

from stackyard.base.documents.limits import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from stackyard.base.documents.limits import DocumentLimits

__all__ = ["JsonError", "JsonLimitError", "next_token", "parse_json", "parse_json_pairs"]

JsonError = orjson.JSONDecodeError

# A string of JSON, as a pattern that neither tries twice nor needs memory for each character.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_PART = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_STRING_BYTES = re.compile(_STRING.encode(), re.DOTALL)
_TOKEN = re.compile(rf"[ \t\r\n]*+({_STRING}|[-+.0-9a-zA-Z]+|[\[\]{{}},:])", re.DOTALL)


class JsonLimitError(orjson.JSONDecodeError):
    """JSON is larger, deeper or fuller than the limits; nothing of it is used."""


def parse_json(data: bytes | bytearray | memoryview | str, limits: DocumentLimits = OUTSIDE) -> Any:
    """Read JSON; of a key that is there twice the last counts.

    Raises:
        JsonError: It is not JSON; its subclass `JsonLimitError` where it is beyond the limits.
    """
    raw = bytes(data) if isinstance(data, memoryview) else data
    opened = _check_size(raw, limits)
    value = orjson.loads(raw)
    # Without as many brackets nothing can be as deep.
    if opened > limits.depth and _is_deeper(value, limits.depth):
        raise _make_depth_error(raw if isinstance(raw, str) else raw.decode(), limits.depth)
    return value


def parse_json_pairs(
    text: str,
    *,
    limits: DocumentLimits = OUTSIDE,
    object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
    parse_number: tuple[Callable[[str], Any], Callable[[str], Any]] | None = None,
) -> Any:
    """Read JSON with Python's own reader, for those who look at each pair or number themselves.

    Args:
        text: What to read.
        limits: What is taken.
        object_pairs_hook: Makes an object of its pairs; a dictionary when absent.
        parse_constant: Is given `NaN`, `Infinity` and `-Infinity`.
        parse_number: What makes a whole number, and what makes another one, of their texts.

    Raises:
        json.JSONDecodeError: It is not JSON; its subclass `JsonLimitError` where it is beyond the limits.
        ValueError: One of the functions refused something.
    """
    opened = _check_size(text, limits)
    parse_int, parse_float = parse_number or (None, None)
    try:
        value = json.loads(
            text,
            object_pairs_hook=object_pairs_hook,
            parse_constant=parse_constant,
            parse_int=parse_int,
            parse_float=parse_float,
        )
    except RecursionError:
        raise _make_depth_error(text, limits.depth) from None
    if opened > limits.depth and _is_deeper(value, limits.depth):
        raise _make_depth_error(text, limits.depth)
    return value


def next_token(text: str, at: int) -> tuple[int, str] | None:
    """Return where the next token of JSON begins and what it is, None where there is none."""
    match = _TOKEN.match(text, at)
    return None if match is None else (match.start(1), match[1])


def _check_size(data: bytes | bytearray | str, limits: DocumentLimits) -> int:
    """Refuse what is too large or too full; return how many brackets open in it at most."""
    if len(data) > limits.size:
        raise JsonLimitError(f"larger than {limits.size} bytes", "", 0)
    if isinstance(data, str):
        opened, commas = data.count("[") + data.count("{"), data.count(",")
    else:
        opened, commas = data.count(b"[") + data.count(b"{"), data.count(b",")
    if opened + commas > limits.values:
        bare = _STRING_BYTES.sub(b"", data.encode(errors="replace") if isinstance(data, str) else data)
        if bare.count(b"[") + bare.count(b"{") + bare.count(b",") > limits.values:
            raise JsonLimitError(f"more than {limits.values} values", "", 0)
    return opened


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            inner
            for one in level
            for inner in (one.values() if type(one) is dict else one)
            if type(inner) is dict or type(inner) is list
        ]
    return bool(level)


def _make_depth_error(text: str, most: int) -> JsonLimitError:
    depth = 0
    for match in _PART.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > most:
                return JsonLimitError(f"nested deeper than {most} levels", text, match.start())
        elif match[0] in "]}":
            depth -= 1
    return JsonLimitError(f"nested deeper than {most} levels", text, 0)
