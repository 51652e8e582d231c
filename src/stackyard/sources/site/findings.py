"""What pydantic finds wrong with a file, as findings that a user can act upon."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostics, Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.site.unions import WRONG_TYPES, by_problem, real_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["SITE_KINDS", "ShapeKinds", "add_findings"]

UNKNOWN_KEY = Kind(
    code="E-SITE-KEY",
    summary="A key is not known here",
    remedy="Correct or remove it; `stackyard site schema` shows what is known, and `_` begins a comment.",
)
MISSING_KEY = Kind(
    code="E-SITE-MISSING",
    summary="Something is missing",
    remedy="Add the key; `stackyard site schema` shows what there has to be.",
)
WRONG_VALUE = Kind(
    code="E-SITE-VALUE",
    summary="A value does not fit",
    remedy="Correct the value; `stackyard site schema` shows what it may be.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeKinds:
    """The kinds of findings about the shape of a sort of file.

    Attributes:
        unknown: A key is not known.
        missing: A key is missing.
        wrong: A value does not fit.
        forms: The kinds of errors that a form of text has of its own, by the types of those errors.
    """

    unknown: Kind
    missing: Kind
    wrong: Kind
    forms: Mapping[str, Kind] = field(default_factory=dict)


SITE_KINDS = ShapeKinds(unknown=UNKNOWN_KEY, missing=MISSING_KEY, wrong=WRONG_VALUE)

_LONGEST_VALUE = 60


def add_findings(
    error: ValidationError,
    places: LocatedValues,
    found: Diagnostics,
    *,
    model: type[BaseModel],
    is_secret: bool = False,
    kinds: ShapeKinds = SITE_KINDS,
) -> None:
    """Add a finding for everything that a validation found.

    Args:
        error: What pydantic says.
        places: The file.
        found: Takes the findings.
        model: What the file was validated as.
        is_secret: Whether values must not be quoted.
        kinds: What findings about such a file are called.
    """
    for group in by_problem(error.errors(include_url=False, include_context=True), places.data):
        _add(group, places, found, model=model, is_secret=is_secret, kinds=kinds)


def _add(
    group: list[ErrorDetails],
    places: LocatedValues,
    found: Diagnostics,
    *,
    model: type[BaseModel],
    is_secret: bool,
    kinds: ShapeKinds,
) -> None:
    # A branch that the value has the type of says more than one that wants another type.
    told = next((error for error in group if error["type"] not in WRONG_TYPES), group[0])
    path = real_path(places.data, told["loc"])
    key = str(told["loc"][-1]) if told["loc"] else ""
    if told["type"] == "extra_forbidden":
        hint = did_you_mean(key, _list_known_keys(model, path[:-1]) - {key})
        detail = f"`{_format_path(path)}` is not known here.{hint}"
        found.add(kinds.unknown, detail, places.key_place(path))
    elif told["type"] == "missing":
        missing = " or ".join(f"`{_format_path([*path, str(error['loc'][-1])])}`" for error in group)
        found.add(kinds.missing, f"{missing} is missing.", places.place(path))
    elif told["type"] in kinds.forms:
        found.add(kinds.forms[told["type"]], f"`{_format_path(path)}`: {told['msg']}", places.place(path))
    else:
        where = places.place([*path, "type"]) if told["type"].startswith("union_tag") else places.place(path)
        found.add(kinds.wrong, _value_detail(group, told, path, is_secret=is_secret), where)


def _value_detail(
    group: list[ErrorDetails], told: ErrorDetails, path: Sequence[Key], *, is_secret: bool
) -> str:
    name = f"`{_format_path(path)}`" if path else "The file"
    value = told["input"]
    if told["type"] == "value_error":
        return f"{name}: {told['msg'].removeprefix('Value error, ')}."
    shown = _format_value(value, is_secret=is_secret)
    if told["type"] in WRONG_TYPES:
        wanted = " or ".join(dict.fromkeys(WRONG_TYPES.get(error["type"], error["msg"]) for error in group))
        return f"{name} has to be {wanted}, and is {shown}.{_suggest_quotes(told, value)}"
    context = told.get("ctx", {})
    if told["type"] in ("literal_error", "enum"):
        return f"{name} has to be {context['expected']}, and is {shown}."
    if told["type"] == "union_tag_invalid":
        where = _format_path([*path, "type"])
        return f"`{where}` has to be {context['expected_tags']}, and is '{context['tag']}'."
    if told["type"] == "union_tag_not_found":
        return f"{name} needs a {context['discriminator'].replace(chr(39), '`')} that says what it is."
    if told["type"] == "string_pattern_mismatch":
        return f"{name} is {shown}, which does not have the form {context['pattern']}."
    return f"{name} is {shown}: {told['msg'][:1].lower()}{told['msg'][1:]}."


def _suggest_quotes(told: ErrorDetails, value: object) -> str:
    """Say so where YAML made something else of what was meant as a text, or the other way round."""
    if told["type"].startswith("string") and isinstance(value, bool):
        return " YAML reads yes, no, on and off as booleans: put the word in quotes."
    if told["type"].startswith("string") and isinstance(value, int | float):
        return " Put it in quotes to make it a text."
    if told["type"] in ("int_type", "bool_type", "float_type") and isinstance(value, str):
        return " Write it without quotes, leading zeros and other signs."
    return ""


def _format_value(value: object, *, is_secret: bool) -> str:
    for kind, word in ((bool, "a boolean"), (str, "a text"), (dict, "a mapping"), (list, "a list")):
        if isinstance(value, kind) and (is_secret or kind in (dict, list)):
            return word
    if value is None:
        return "nothing"
    if is_secret:
        return "a number"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _format_path(path: Sequence[Key]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def _list_known_keys(model: type[BaseModel], path: Sequence[Key]) -> set[str]:
    """Return the keys that a mapping may have, by walking the model's JSON Schema."""
    schema = _make_schema(model)
    current = [schema]
    for key in path:
        current = [
            step
            for part in _alternatives(current, schema)
            if (step := part.get("items") if isinstance(key, int) else _property(part, key))
        ]
    return {name for part in _alternatives(current, schema) for name in part.get("properties", {})}


@functools.cache
def _make_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model: made once, for a file may have the same mistake many times."""
    return model.model_json_schema()


def _property(part: dict[str, Any], key: str) -> Any:
    more = part.get("additionalProperties")
    return part.get("properties", {}).get(key, more if isinstance(more, dict) else None)


def _alternatives(parts: Iterable[dict[str, Any]], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what parts of a schema may be, with references and alternatives followed."""
    result: list[dict[str, Any]] = []
    pending = list(parts)
    while pending:
        part = pending.pop()
        if "$ref" in part:
            pending.append(schema["$defs"][part["$ref"].rpartition("/")[2]])
        pending.extend(part.get("anyOf", []))
        pending.extend(part.get("oneOf", []))
        result.append(part)
    return result
