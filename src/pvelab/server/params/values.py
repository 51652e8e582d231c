"""Checking one value against one schema: type, format, pattern, lengths, limits, enumeration.

A value may be a property string, whose parts are values in turn; so both are read here.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from typing import Any

from pvelab.server.params.formats import check_format, parse_size
from pvelab.server.params.property_formats import PROPERTY_FORMATS
from pvelab.server.params.texts import FormatError

__all__ = ["ErrorTexts", "Schema", "check_value", "parse_boolean", "parse_properties"]

ErrorTexts = dict[str, str]
Schema = Mapping[str, Any]

# Digits of other scripts are no numbers to Perl, although its patterns take them for digits.
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.\d+|\d+\.|\.\d+|\d+)([eE][+-]?\d+)?", re.ASCII)
# Past this Perl turns to floating point and JSON to nonsense; nothing in the API means such a number.
_MOST_DIGITS = 18


_TRUE = frozenset(("1", "on", "yes", "true"))
_FALSE = frozenset(("0", "off", "no", "false"))


def check_value(path: str, schema: Schema, value: Any, errors: ErrorTexts) -> Any:
    """Return the value in its declared type, or add to `errors` what is wrong with it.

    Args:
        path: The name under which a problem is reported.
        schema: The declared schema of the value.
        value: Text from a form or query, or what a JSON body held.
        errors: Where problems go, one text a name.
    """
    kind = schema.get("type", "string")
    if kind == "array":
        return _check_array(path, schema, value, errors)
    text = _as_text(value, kind)
    problem = text.problem or _problem(schema, text.text, path)
    if problem:
        errors[path] = problem
        return None
    return _convert(kind, text.text)


class _Text:
    """A scalar as text, or why it cannot be one."""

    __slots__ = ("problem", "text")

    def __init__(self, text: str, problem: str | None = None) -> None:
        self.text = text
        self.problem = problem


def _as_text(value: Any, kind: str) -> _Text:
    if isinstance(value, bool):
        if kind == "boolean":
            return _Text(str(int(value)))
        return _Text("", f"type check ('{kind}') failed - got JSON::PP::Boolean")
    if isinstance(value, (list, dict)):
        return _Text(
            "", f"type check ('{kind}') failed - got {'ARRAY' if isinstance(value, list) else 'HASH'}"
        )
    text = value if isinstance(value, str) else str(value)
    return _Text(text, None if _has_type(kind, text) else f"type check ('{kind}') failed - got '{text}'")


def _has_type(kind: str, text: str) -> bool:
    match kind:
        case "integer":
            return bool(_INTEGER.fullmatch(text)) and len(text) <= _MOST_DIGITS
        case "number":
            return bool(_NUMBER.fullmatch(text)) and len(text) <= 64 and math.isfinite(float(text))
        case "boolean":
            return text in ("0", "1")
        case _:
            return True


def _convert(kind: str, text: str) -> str | int | float:
    match kind:
        case "integer" | "boolean":
            return int(text)
        case "number":
            return int(text) if _INTEGER.fullmatch(text) and len(text) <= _MOST_DIGITS else float(text)
        case _:
            return text


def _check_array(path: str, schema: Schema, value: Any, errors: ErrorTexts) -> list[Any] | None:
    entries = value if isinstance(value, list) else [value]
    if isinstance(value, dict):
        errors[path] = "type check ('array') failed"
        return None
    items = schema.get("items")
    if not items:
        return entries
    return [check_value(f"{path}[{n}]", items, entry, errors) for n, entry in enumerate(entries)]


def _problem(schema: Schema, text: str, path: str) -> str | None:
    return (
        _format_problem(schema, text, path)
        or _pattern_problem(schema, text)
        or _length_problem(schema, text)
        or _limit_problem(schema, text)
        or _enum_problem(schema, text)
    )


def _format_problem(schema: Schema, text: str, path: str) -> str | None:
    declared = schema.get("format")
    if not declared:
        return None
    try:
        if isinstance(declared, str):
            _check_named(declared, text, path)
        else:
            parse_properties(declared, text, path)
    except FormatError as err:
        problem = str(err)
        # Proxmox's texts end their line; clients see the newline, so it stays.
        return f"invalid format - {problem}" + ("" if problem.endswith("\n") else "\n")
    return None


def _check_named(name: str, text: str, path: str) -> None:
    schema = PROPERTY_FORMATS.get(name)
    if schema is None:
        check_format(name, text)
    else:
        parse_properties(schema, text, path)


def _pattern_problem(schema: Schema, text: str) -> str | None:
    pattern = schema.get("pattern")
    if pattern and not _compile(pattern).search(text):
        return "value does not match the regex pattern"
    return None


@functools.cache
def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a Perl pattern as Proxmox anchors it: `^a|b$` is what `a|b` becomes there too."""
    python = re.sub(r"\(\?\^([a-z]*):", lambda flags: f"(?{flags[1].replace('u', '')}:", pattern)
    return re.compile(f"^{python}$", re.ASCII)


def _length_problem(schema: Schema, text: str) -> str | None:
    longest = schema.get("max_length", schema.get("maxLength"))
    if longest is not None and len(text) > longest:
        return f"value may only be {longest} characters long"
    shortest = schema.get("min_length", schema.get("minLength"))
    if shortest is not None and len(text) < shortest:
        return f"value must be at least {shortest} characters long"
    return None


def _limit_problem(schema: Schema, text: str) -> str | None:
    maximum, minimum = schema.get("maximum"), schema.get("minimum")
    if (maximum is None and minimum is None) or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if maximum is not None and number > float(maximum):
        return f"value must have a maximum value of {maximum}"
    if minimum is not None and number < float(minimum):
        return f"value must have a minimum value of {minimum}"
    return None


def _enum_problem(schema: Schema, text: str) -> str | None:
    allowed = schema.get("enum")
    if allowed and text not in [str(entry) for entry in allowed]:
        listed = ", ".join(str(entry) for entry in allowed)
        return f"value '{text}' does not have a value in the enumeration '{listed}'"
    return None


def parse_boolean(text: str) -> str:
    """Return `1` or `0` for any spelling of a boolean, and other text as it is."""
    lower = text.lower()
    if lower in _TRUE:
        return "1"
    return "0" if lower in _FALSE else text


def parse_properties(schema: Mapping[str, Schema], text: str, path: str = "") -> dict[str, Any]:
    """Read a property string; values have the type that the schema says, sizes become bytes.

    Args:
        schema: The keys and their values.
        text: The property string.
        path: The parameter's name, which error texts carry.

    Raises:
        FormatError: The text does not fit; the message lists everything that is wrong with it.
    """
    raw = _split(schema, text)
    errors: ErrorTexts = {}
    values = _check_all(schema, raw, path, errors)
    if errors:
        raise FormatError(
            "".join(["format error\n", *(f"{key}: {problem}\n" for key, problem in errors.items())])
        )
    return values


def _split(schema: Mapping[str, Schema], text: str) -> dict[str, str]:
    raw: dict[str, str] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if equals and (not key or not value):
            raise FormatError("missing key in comma-separated list property")
        if equals:
            _take(schema, raw, key, value)
        else:
            _take_default(schema, raw, part)
    return raw


def _take(schema: Mapping[str, Schema], raw: dict[str, str], key: str, value: str) -> None:
    if key in raw:
        raise FormatError(f"duplicate key in comma-separated list property: {key}")
    field = schema.get(key)
    if field is not None and "alias" in field:
        key_alias = field.get("keyAlias")
        if key_alias:
            if key_alias in raw:
                raise FormatError(f"key alias '{key_alias}' is already defined")
            raw[key_alias] = key
        key = field["alias"]
        field = schema.get(key)
        if key in raw:
            raise FormatError(f"key '{key}' is already defined (via alias)")
    if field is None:
        raise FormatError(f"invalid key in comma-separated list property: {key}")
    raw[key] = parse_boolean(value) if field.get("type") == "boolean" else value


def _take_default(schema: Mapping[str, Schema], raw: dict[str, str], value: str) -> None:
    default_key = next((key for key, field in schema.items() if field.get("default_key")), None)
    if default_key is None:
        raise FormatError("value without key, but schema does not define a default key")
    if default_key in raw:
        raise FormatError(f"duplicate key in comma-separated list property: {default_key}")
    raw[default_key] = parse_boolean(value) if schema[default_key].get("type") == "boolean" else value


def _check_all(
    schema: Mapping[str, Schema], raw: Mapping[str, str], path: str, errors: ErrorTexts
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, field in schema.items():
        where = f"{path}.{key}" if path else key
        if key in raw:
            values[key] = check_value(where, field, raw[key], errors)
            if field.get("format") == "disk-size" and isinstance(values[key], str):
                values[key] = parse_size(values[key])
            needed = field.get("requires")
            if needed and needed not in raw:
                errors[f"{path}.{needed}" if path else needed] = f"missing property required by '{where}'"
        elif not field.get("optional") and "alias" not in field:
            errors[where] = "property is missing and it is not optional"
    return values
