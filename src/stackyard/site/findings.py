"""What pydantic finds wrong with a file, as findings that a user can act upon."""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING, Any

from stackyard.diagnostics import Diagnostics, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from stackyard.site.document import Key, Places

__all__ = ["add_findings", "meant", "real_path"]

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

_WANTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "a text",
    "string_sub_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "nothing",
}
_LONGEST_VALUE = 60


def add_findings(
    error: ValidationError,
    places: Places,
    found: Diagnostics,
    *,
    model: type[BaseModel],
    is_secret: bool = False,
) -> None:
    """Add a finding for everything that a validation found.

    Args:
        error: What pydantic says.
        places: The file.
        found: Takes the findings.
        model: What the file was validated as.
        is_secret: Whether values must not be quoted.
    """
    for group in _by_union(error.errors(include_url=False, include_context=True), places.data):
        _add(group, places, found, model=model, is_secret=is_secret)


def _by_union(errors: Iterable[ErrorDetails], data: Any) -> Iterator[list[ErrorDetails]]:
    """Return errors in groups: all that the branches of one union said about one value are one group."""

    def union_of(error: ErrorDetails) -> tuple[Any, ...]:
        return tuple(real_path(data, error["loc"])), _has_tag(data, error)

    yield from (list(group) for _, group in itertools.groupby(errors, key=union_of))


def _has_tag(data: Any, error: ErrorDetails) -> object:
    """Return something equal for errors of one union and different for all others."""
    missing = error["type"] in ("missing", "extra_forbidden")
    skipped = len(error["loc"]) - len(real_path(data, error["loc"]))
    return "union" if skipped and not missing else error["loc"]


def real_path(data: Any, loc: Sequence[Key]) -> list[Key]:
    """Return the keys that the file really has of a place; pydantic also names the branches of unions."""
    path: list[Key] = []
    current = data
    for item in loc:
        is_step = (isinstance(current, dict) and item in current) or (
            isinstance(current, list) and isinstance(item, int) and item < len(current)
        )
        if is_step:
            path.append(item)
            current = current[item]
    return path


def _add(
    group: list[ErrorDetails],
    places: Places,
    found: Diagnostics,
    *,
    model: type[BaseModel],
    is_secret: bool,
) -> None:
    # A branch that the value has the type of says more than one that wants another type.
    told = next((error for error in group if error["type"] not in _WANTED), group[0])
    path = real_path(places.data, told["loc"])
    key = str(told["loc"][-1]) if told["loc"] else ""
    if told["type"] == "extra_forbidden":
        hint = meant(key, _known_keys(model, path[:-1]))
        found.add(UNKNOWN_KEY, f"`{_dotted(path)}` is not known here.{hint}", places.key_place(path))
    elif told["type"] == "missing":
        found.add(MISSING_KEY, f"`{_dotted([*path, key])}` is missing.", places.place(path))
    else:
        where = places.place([*path, "type"]) if told["type"].startswith("union_tag") else places.place(path)
        found.add(WRONG_VALUE, _value_detail(group, told, path, is_secret=is_secret), where)


def _value_detail(
    group: list[ErrorDetails], told: ErrorDetails, path: Sequence[Key], *, is_secret: bool
) -> str:
    name = f"`{_dotted(path)}`" if path else "The file"
    value = told["input"]
    if told["type"] == "value_error":
        return f"{name}: {told['msg'].removeprefix('Value error, ')}."
    if told["type"] in _WANTED:
        wanted = " or ".join(dict.fromkeys(_WANTED.get(error["type"], error["msg"]) for error in group))
        return (
            f"{name} has to be {wanted}, and is {_shown(value, is_secret=is_secret)}.{_quoting(told, value)}"
        )
    context = told.get("ctx", {})
    shown = _shown(value, is_secret=is_secret)
    if told["type"] in ("literal_error", "enum"):
        return f"{name} has to be {context['expected']}, and is {shown}."
    if told["type"] == "union_tag_invalid":
        return (
            f"`{_dotted([*path, 'type'])}` has to be {context['expected_tags']}, and is '{context['tag']}'."
        )
    if told["type"] == "union_tag_not_found":
        return f"{name} needs a {context['discriminator'].replace(chr(39), '`')} that says what it is."
    if told["type"] == "string_pattern_mismatch":
        return f"{name} is {shown}, which does not have the form {context['pattern']}."
    return f"{name} is {shown}: {told['msg'][:1].lower()}{told['msg'][1:]}."


def _quoting(told: ErrorDetails, value: object) -> str:
    """Say so where YAML made something else of what was meant as a text, or the other way round."""
    if told["type"].startswith("string") and isinstance(value, bool):
        return " YAML reads yes, no, on and off as booleans: put the word in quotes."
    if told["type"].startswith("string") and isinstance(value, int | float):
        return " Put it in quotes to make it a text."
    if told["type"] in ("int_type", "bool_type", "float_type") and isinstance(value, str):
        return " Write it without quotes, leading zeros and other signs."
    return ""


def _shown(value: object, *, is_secret: bool) -> str:
    for kind, word in ((bool, "a boolean"), (str, "a text"), (dict, "a mapping"), (list, "a list")):
        if isinstance(value, kind) and (is_secret or kind in (dict, list)):
            return word
    if value is None:
        return "nothing"
    if is_secret:
        return "a number"
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _dotted(path: Sequence[Key]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def meant(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?", or nothing where nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=2)
    return f" Did you mean {' or '.join(f'`{name}`' for name in close)}?" if close else ""


def _known_keys(model: type[BaseModel], path: Sequence[Key]) -> set[str]:
    """Return the keys that a mapping may have, by walking the model's JSON Schema."""
    schema = model.model_json_schema()
    current = [schema]
    for key in path:
        current = [
            step
            for part in _alternatives(current, schema)
            if (step := part.get("items") if isinstance(key, int) else _property(part, key))
        ]
    return {name for part in _alternatives(current, schema) for name in part.get("properties", {})}


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
