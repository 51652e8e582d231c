"""Nested metadata as a flat list of names and back, for formats that have no nesting.

`age: [{recipient: x}]` becomes `age__list_0__map_recipient: x`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

__all__ = ["flatten", "unflatten"]

_STEP = re.compile(r"__(map|list)_")


def flatten(document: Mapping[str, object]) -> dict[str, str | int | float | bool | None]:
    """Return the names and values of nested metadata."""
    return {name: value for key, inner in document.items() for name, value in _flat(inner, key)}


def _flat(value: object, name: str) -> Iterator[tuple[str, str | int | float | bool | None]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}__map_{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flat(inner, f"{name}__list_{index}")
    elif value is None or isinstance(value, str | int | float | bool):
        yield name, value


def unflatten(flat: Mapping[str, object]) -> dict[str, object]:
    """Return nested metadata; names that contradict each other give what can be had of them."""
    root: dict[str, object] = {}
    for name, value in flat.items():
        first, *steps = _STEP.split(name)
        keys = [first, *steps[1::2]]
        here = root
        for key in keys[:-1]:
            inner = here.setdefault(key, {})
            here = inner if isinstance(inner, dict) else {}
        here[keys[-1]] = value
    listed = {name.partition("__list_")[0] for name in flat if "__list_" in name}
    return {key: _convert_lists(value, is_list=key in listed) for key, value in root.items()}


def _convert_lists(value: object, *, is_list: bool) -> object:
    """Turn mappings whose keys are numbers into lists, in the order of the numbers."""
    if not isinstance(value, dict):
        return value
    inner = {key: _convert_lists(one, is_list=False) for key, one in value.items()}
    if inner and (is_list or all(key.isdecimal() for key in inner)) and all(key.isdecimal() for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner
