"""Values in variables files against the types of their variables.

OpenTofu ignores an attribute that an object type does not have, without a word, and of a value that does not
fit it names only the variable. Here each is named with its own line. A message never has a value: it may be a
secret.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stackyard.base.diagnostics import Diagnostic, Kind
from stackyard.base.suggestions import did_you_mean
from stackyard.sources.stacks.value_places import ValuePlaces
from stackyard.sources.stacks.value_types import Collection, ObjectType, TupleType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stackyard.sources.stacks.tfvars import Tfvars
    from stackyard.sources.stacks.value_types import ValueType

__all__ = ["check_values"]

UNKNOWN_ATTRIBUTE = Kind(
    code="E-STACK-VALUE-UNKNOWN",
    summary="A value has an attribute that its variable does not declare",
    remedy="Correct the name, remove it, or declare it in the type of the variable: OpenTofu ignores it.",
)
MISSING_ATTRIBUTE = Kind(
    code="E-STACK-VALUE-MISSING",
    summary="A value lacks a required attribute",
    remedy="Add the attribute, or make it `optional(...)` in the type of the variable.",
)
WRONG_KIND = Kind(
    code="E-STACK-VALUE-TYPE",
    summary="A value is of another type than its variable",
    remedy="Correct the value, or the type of the variable.",
)
_EXPECTED = {
    "string": "a text",
    "number": "a number",
    "bool": "`true` or `false`",
    "list": "a list",
    "set": "a list",
    "map": "a map",
}


@dataclass(frozen=True, slots=True)
class _At:
    """A value: its address as OpenTofu writes it, and the keys that lead to it."""

    address: str
    keys: tuple[str | int, ...]

    def attribute(self, name: str) -> _At:
        return _At(f"{self.address}.{name}", (*self.keys, name))

    def item(self, key: str | int) -> _At:
        shown = json.dumps(key, ensure_ascii=False) if isinstance(key, str) else key
        return _At(f"{self.address}[{shown}]", (*self.keys, key))


def check_values(read: Tfvars, data: bytes, types: Mapping[str, ValueType]) -> list[Diagnostic]:
    """Return what does not fit in a variables file.

    Args:
        read: The values.
        data: The file that they are from.
        types: The types of variables, those with an object in them.
    """
    wrong = [
        (name, kind)
        for name, kind in types.items()
        if name in read.variables and not kind.fits(read.variables[name].value)
    ]
    if not wrong:
        return []
    places = ValuePlaces(data, read.path)
    return [
        Diagnostic(kind=kind, detail=detail, where=places.find(at.keys))
        for name, wanted in wrong
        for at, kind, detail in _explain(read.variables[name].value, wanted, _At(name, (name,)))
    ]


def _explain(value: Any, kind: ValueType | None, at: _At) -> Iterator[tuple[_At, Kind, str]]:
    if kind is None or kind.fits(value):
        return
    if isinstance(kind, ObjectType) and isinstance(value, dict):
        yield from _explain_object(value, kind, at)
    elif isinstance(kind, Collection) and isinstance(value, dict | list) and _is_same(value, kind):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from _explain(one, kind.item, at.item(key))
    elif isinstance(kind, TupleType) and isinstance(value, list) and len(value) == len(kind.items):
        for number, (one, wanted) in enumerate(zip(value, kind.items, strict=True)):
            yield from _explain(one, wanted, at.item(number))
    else:
        yield at, WRONG_KIND, f"`{at.address}` is {_describe(value)}, and it has to be {_expected(kind)}."


def _explain_object(value: dict[str, Any], kind: ObjectType, at: _At) -> Iterator[tuple[_At, Kind, str]]:
    for name, one in value.items():
        inner = at.attribute(name)
        if name not in kind.attributes:
            close = did_you_mean(name, kind.attributes)
            yield inner, UNKNOWN_ATTRIBUTE, f"`{inner.address}` is not in the type of the variable.{close}"
        else:
            yield from _explain(one, kind.attributes[name], inner)
    for name in sorted(kind.required - value.keys()):
        yield at, MISSING_ATTRIBUTE, f"`{at.address}` has no `{name}`."


def _is_same(value: dict[str, Any] | list[Any], kind: Collection) -> bool:
    return isinstance(value, dict) is (kind.name == "map")


def _expected(kind: ValueType) -> str:
    if isinstance(kind, TupleType):
        return f"a list of {len(kind.items)}"
    return "an object" if isinstance(kind, ObjectType) else _EXPECTED[kind.name]


def _describe(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else "a number"
