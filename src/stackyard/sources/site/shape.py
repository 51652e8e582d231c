"""One file held against its model, alone: what it is, or everything that is wrong with its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from stackyard.sources.site.findings import add_findings
from stackyard.sources.site.unions import real_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel

    from stackyard.base.diagnostics import Diagnostics
    from stackyard.sources.site.document import Key, LocatedValues

__all__ = ["validate"]

M = TypeVar("M", bound="BaseModel")

# What is wrong with a text only because there is nothing in it.
_OF_TEXTS = frozenset({"string_pattern_mismatch", "string_too_short", "value_error"})


def validate(
    model: type[M], places: LocatedValues, found: Diagnostics, *, is_secret: bool = False
) -> M | None:
    """Return a file as its model; nothing, and findings, where it is not valid.

    `key: ""` counts as a key that is not there, where it may be absent and its text cannot be empty: such
    files come as templates that are filled in.
    """
    try:
        return model.model_validate(places.data)
    except ValidationError as err:
        error = err
    if _drop_blanks(model, places.data, error):
        return validate(model, places, found, is_secret=is_secret)
    add_findings(error, places, found, model=model, is_secret=is_secret)
    return None


def _drop_blanks(model: type[BaseModel], data: dict[str, Any], error: ValidationError) -> bool:
    """Remove texts with nothing in them that stand for keys that are not set; tell whether there were any."""
    blanks = {path for path in _paths(error, data) if path and _value(data, path) == ""}
    for path in blanks:
        _value(data, path[:-1])[path[-1]] = None
    try:
        model.model_validate(data)
        needed: set[tuple[Key, ...]] = set()
    except ValidationError as err:
        needed = blanks & {tuple(real_path(data, each["loc"])) for each in err.errors(include_url=False)}
    for path in blanks:
        above = _value(data, path[:-1])
        if path in needed:
            above[path[-1]] = ""
        else:
            del above[path[-1]]
    return bool(blanks - needed)


def _paths(error: ValidationError, data: dict[str, Any]) -> set[tuple[Key, ...]]:
    """Return the keys of mappings whose texts do not fit."""
    found = {
        tuple(real_path(data, each["loc"]))
        for each in error.errors(include_url=False)
        if each["type"] in _OF_TEXTS
    }
    return {path for path in found if path and isinstance(path[-1], str)}


def _value(data: Any, path: Sequence[Key]) -> Any:
    for key in path:
        data = data[key]
    return data
