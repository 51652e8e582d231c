"""What the branches of a union say about one value, as the one problem that it has.

A value that may be one of several things is held against each of them, and each that it is not has errors of
its own, which contradict each other. The branch that it is nearest to is what was meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stackyard.base.suggestions import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from stackyard.sources.site.document import Key

__all__ = ["WRONG_TYPES", "by_problem", "real_path"]

# What an error of a type wants, in words.
WRONG_TYPES = {
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
_UNKNOWN, _MISSING = "extra_forbidden", "missing"

# A place, as pydantic names it.
_Path = tuple["Key", ...]


def real_path(data: Any, loc: Sequence[Key]) -> list[Key]:
    """Return the keys that the file really has of a place; pydantic also names the branches of unions."""
    return [item for item, is_real in _steps(data, loc) if is_real]


def _steps(data: Any, loc: Sequence[Key]) -> list[tuple[Key, bool]]:
    steps = []
    for item in loc:
        is_real = (isinstance(data, dict) and item in data) or (
            isinstance(data, list) and isinstance(item, int) and item < len(data)
        )
        steps.append((item, is_real))
        data = data[item] if is_real else data
    return steps


def by_problem(errors: Iterable[ErrorDetails], data: Any, start: int = 0) -> list[list[ErrorDetails]]:
    """Return errors in groups that are one problem each; those of a union are what its nearest branch says.

    Args:
        errors: What pydantic says.
        data: The values.
        start: How much of each place is settled, as inside of a branch.
    """
    groups: list[list[ErrorDetails]] = []
    unions: dict[_Path, dict[_Path, list[ErrorDetails]]] = {}
    for error in errors:
        union, branch = _union_of(data, error, start)
        if union is None:
            groups.append([error])
        else:
            unions.setdefault(union, {}).setdefault(branch, []).append(error)
    for union, branches in unions.items():
        groups += _nearest(union, branches, data)
    return groups


def _union_of(data: Any, error: ErrorDetails, start: int) -> tuple[_Path | None, _Path]:
    """Return the place of the value that is one of several things, and which of them an error is about."""
    loc = error["loc"][:-1] if error["type"] == _MISSING else error["loc"]
    steps = list(enumerate(_steps(data, loc)))
    first = next((number for number, (_, is_real) in steps if not is_real and number >= start), None)
    if first is None:
        return None, ()
    last = next((number for number, (_, is_real) in steps if is_real and number > first), len(steps))
    return tuple(loc[:first]), tuple(loc[first:last])


def _nearest(
    union: _Path, branches: Mapping[_Path, list[ErrorDetails]], data: Any
) -> list[list[ErrorDetails]]:
    taking = {
        branch: errors for branch, errors in branches.items() if not _is_other_type(union, branch, errors)
    }
    if not taking:
        # A value of a type that no branch takes: one sentence says what all of them want.
        return [[error for errors in branches.values() for error in errors]]
    branch, best = min(taking.items(), key=lambda item: _distance(item[1]))
    if len(taking) > 1 and all(error["type"] == _MISSING for error in best):
        return [[errors[0] for errors in taking.values() if _distance(errors) == _distance(best)]]
    meant = {close for error in best if (close := _find_meant_key(error, best)) is not None}
    rest = [error for error in best if not (error["type"] == _MISSING and error["loc"][-1] in meant)]
    return by_problem(rest, data, len(union) + len(branch))


def _is_other_type(union: _Path, branch: _Path, errors: Sequence[ErrorDetails]) -> bool:
    """Return whether a branch needs a value of another type altogether."""
    depth = len(union) + len(branch)
    return all(error["type"] in WRONG_TYPES and len(error["loc"]) == depth for error in errors)


def _distance(errors: Sequence[ErrorDetails]) -> tuple[int, int]:
    """Return how far a value is from a branch: keys that it does not know, and everything that is wrong."""
    unknown = sum(error["type"] == _UNKNOWN for error in errors)
    close = sum(_find_meant_key(error, errors) is not None for error in errors)
    return unknown - close, len(errors) - close


def _find_meant_key(error: ErrorDetails, errors: Sequence[ErrorDetails]) -> str | None:
    """Return the missing key that an unknown one was meant to be."""
    if error["type"] != _UNKNOWN:
        return None
    missing = [str(each["loc"][-1]) for each in errors if each["type"] == _MISSING]
    return closest(str(error["loc"][-1]), missing)
