"""Types of input variables, as far as they say what a value may look like.

What fits is what OpenTofu takes, converted if need be. A type that cannot be read fits every value, as `any`
does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stackyard.sources.stacks.tfvars_scan import NOT_CONSTANT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.sources.stacks.code_file import Expression

__all__ = ["Collection", "ObjectType", "Scalar", "TupleType", "ValueType", "read_types"]

_SCALARS = ("string", "number", "bool")
# OpenTofu knows more forms of a number in a text than have to be known here; it takes infinity too.
_NUMBER_TEXT = re.compile(r"\d|[+-]?inf\Z", re.IGNORECASE)
_TRUTHS = frozenset(("true", "false", "1", "0"))


@dataclass(frozen=True, slots=True)
class Scalar:
    """`string`, `number` or `bool`."""

    name: str

    def fits(self, value: Any) -> bool:
        """Return whether OpenTofu takes a value, converted if need be."""
        kind = value.__class__
        if kind is dict or kind is list:
            return False
        if self.name == "string" or value is None or value is NOT_CONSTANT:
            return True
        if self.name == "bool":
            return kind is bool or (kind is str and value in _TRUTHS)
        return kind is not bool and (kind is not str or _NUMBER_TEXT.search(value) is not None)


@dataclass(frozen=True, slots=True)
class Collection:
    """`list`, `set` or `map` of one type."""

    name: str
    item: ValueType | None

    def fits(self, value: Any) -> bool:
        """Return whether a value, and everything in it, fits."""
        if value is None or value is NOT_CONSTANT:
            return True
        if isinstance(value, dict) is not (self.name == "map") or not isinstance(value, dict | list):
            return False
        if self.item is None:
            return True
        return all(map(self.item.fits, value.values() if isinstance(value, dict) else value))


@dataclass(frozen=True, slots=True)
class TupleType:
    """`tuple`: one type for each item."""

    items: tuple[ValueType | None, ...]

    def fits(self, value: Any) -> bool:
        """Return whether a value, and everything in it, fits."""
        if value is None or value is NOT_CONSTANT:
            return True
        if not isinstance(value, list) or len(value) != len(self.items):
            return False
        return all(kind is None or kind.fits(one) for kind, one in zip(self.items, value, strict=True))


@dataclass(frozen=True, slots=True)
class ObjectType:
    """`object`: its attributes with their types, and those that have to be there."""

    attributes: Mapping[str, ValueType | None]
    required: frozenset[str]
    _names: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", frozenset(self.attributes))

    def fits(self, value: Any) -> bool:
        """Return whether a value, and everything in it, fits."""
        if value.__class__ is not dict:
            return value is None or value is NOT_CONSTANT
        keys = value.keys()
        if not (keys <= self._names and keys >= self.required):
            return False
        attributes = self.attributes
        for name, one in value.items():
            kind = attributes[name]
            if kind is not None and not kind.fits(one):
                return False
        return True


ValueType = Scalar | Collection | TupleType | ObjectType


def read_types(shapes: Mapping[str, Expression]) -> dict[str, ValueType]:
    """Return the types of variables, those that could be read and have an object in them."""
    found = {name: _read(shape) for name, shape in shapes.items()}
    return {name: one for name, one in found.items() if one is not None and _has_object(one)}


def _read(shape: Expression) -> ValueType | None:
    if not isinstance(shape, list) or len(shape) < 2:
        return None
    mark, name, *arguments = shape
    if mark == "r":
        return Scalar(name) if name in _SCALARS and not arguments else None
    if mark != "c" or len(arguments) != 1:
        return None
    (inner,) = arguments
    if name in ("list", "set", "map"):
        return Collection(name, _read(inner))
    if not isinstance(inner, list):
        return None
    if name == "tuple" and inner[0] == "l":
        return TupleType(tuple(_read(one) for one in inner[1:]))
    if name == "object" and inner[0] == "o":
        return _read_object(inner[1])
    return None


def _read_object(shapes: Mapping[str, Expression]) -> ObjectType:
    attributes: dict[str, ValueType | None] = {}
    required = set()
    for name, shape in shapes.items():
        if isinstance(shape, list) and shape[:2] == ["c", "optional"]:
            attributes[name] = _read(shape[2]) if len(shape) > 2 else None
        else:
            attributes[name] = _read(shape)
            required.add(name)
    return ObjectType(attributes, frozenset(required))


def _has_object(kind: ValueType | None) -> bool:
    if isinstance(kind, Collection):
        return _has_object(kind.item)
    if isinstance(kind, TupleType):
        return any(map(_has_object, kind.items))
    return isinstance(kind, ObjectType)
