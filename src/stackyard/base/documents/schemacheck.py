"""Checking a document against a JSON Schema that we ship: the keywords that ours use, and no others.

A library that knows all of JSON Schema is larger than the rest of what reads documents. Its messages are
kept, because users have seen them; a test compares the two. A user's own schema needs such a library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

__all__ = ["SchemaChecker", "SchemaFinding"]

_Path = tuple[str | int, ...]
# What is compiled from a schema: takes a value and its path, and adds what is wrong with it to a list.
_Check = Callable[[Any, _Path, "list[SchemaFinding]"], None]


@dataclass(frozen=True, slots=True)
class SchemaFinding:
    """What is wrong with a value, and the keyword of the schema that says so."""

    path: _Path
    keyword: str
    message: str


class SchemaChecker:
    """A schema, ready to check documents.

    Args:
        schema: The schema; what it refers to is in itself.

    Raises:
        KeyError: It uses a keyword that is not known here.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._references: dict[str, _Check] = {}
        self._check = self._compile(schema)

    def findings(self, document: Any) -> list[SchemaFinding]:
        """Return all that is wrong with a document."""
        found: list[SchemaFinding] = []
        self._check(document, (), found)
        return found

    def _compile(self, schema: Any) -> _Check:
        if schema is True:
            return _all_of([])
        if schema is False:
            return _each(lambda value: [("falseSchema", f"False schema does not allow {_text(value)}")])
        made = []
        for keyword, argument in schema.items():
            if keyword == "$ref":
                made.append(self._refer(argument))
            elif keyword in _NOTES:
                continue
            elif keyword in _VALUES:
                made.append(_each(_VALUES[keyword](argument)))
            else:
                made.append(_SUBSCHEMAS[keyword](self._compile, argument, schema))
        return made[0] if len(made) == 1 else _all_of(made)

    def _refer(self, reference: str) -> _Check:
        """Return the check of another part of the schema, which may be around this one."""
        if reference not in self._references:
            self._references[reference] = lambda value, path, found: self._references[reference](
                value, path, found
            )
            schema: Any = self._root
            for part in reference.removeprefix("#/").split("/"):
                schema = schema[part]
            self._references[reference] = self._compile(schema)
        return self._references[reference]


# --- Keywords that look at a value alone

_Said = list[tuple[str, str]]
_NOTES = frozenset(
    "$schema $id $defs definitions title description x-stackyard then default examples".split()
)
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}
# In the order in which they are named.
_TYPE_ORDER = ("null", "boolean", "integer", "number", "string", "array", "object")


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _type(argument: Any) -> Callable[[Any], _Said]:
    names = [argument] if isinstance(argument, str) else sorted(argument, key=_TYPE_ORDER.index)
    tests = [_TYPES[name] for name in names]
    wanted = ", ".join(_text(name) for name in names)
    word = "type" if len(names) == 1 else "types"

    def said(value: Any) -> _Said:
        if any(test(value) for test in tests):
            return []
        return [("type", f"{_text(value)} is not of {word} {wanted}")]

    return said


def _required(names: list[str]) -> Callable[[Any], _Said]:
    def said(value: Any) -> _Said:
        if not isinstance(value, dict):
            return []
        return [("required", f"{_text(name)} is a required property") for name in names if name not in value]

    return said


def _simple(
    keyword: str, kind: type | tuple[type, ...], test: Callable[[Any, Any], bool], words: Callable[[Any], str]
) -> Callable[[Any], Callable[[Any], _Said]]:
    """Return a keyword that asks one thing of values of one kind."""

    def with_argument(argument: Any) -> Callable[[Any], _Said]:
        ending = words(argument)

        def said(value: Any) -> _Said:
            if not isinstance(value, kind) or (kind is not object and isinstance(value, bool)):
                return []
            return [] if test(value, argument) else [(keyword, f"{_text(value)} {ending}")]

        return said

    return with_argument


def _pattern(argument: str) -> Callable[[Any], _Said]:
    find = compile_pattern(argument).search

    def said(value: Any) -> _Said:
        if not isinstance(value, str) or find(value):
            return []
        return [("pattern", f'{_text(value)} does not match "{argument}"')]

    return said


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return a pattern as JSON Schema means it: `$` is the end, not also before a last line break."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", text))


def _is_equal(one: Any, other: Any) -> bool:
    # In Python, but not in JSON, 1 is true.
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _const(argument: Any) -> Callable[[Any], _Said]:
    return lambda value: [] if _is_equal(value, argument) else [("const", f"{_text(argument)} was expected")]


def _are_unique(value: list[Any], wanted: bool) -> bool:
    keys = [orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in value]
    return not wanted or len(set(keys)) == len(keys)


def _choices(options: list[Any]) -> str:
    *first, last = map(_text, options)
    return f"{', '.join(first)} or {last}" if first else last


_VALUES: dict[str, Callable[[Any], Callable[[Any], _Said]]] = {
    "type": _type,
    "required": _required,
    "pattern": _pattern,
    "const": _const,
    "enum": _simple(
        "enum",
        object,
        lambda value, options: any(_is_equal(value, one) for one in options),
        lambda options: f"is not one of {_choices(options)}",
    ),
    "minimum": _simple(
        "minimum", (int, float), lambda value, least: value >= least, "is less than the minimum of {}".format
    ),
    "maximum": _simple(
        "maximum", (int, float), lambda value, most: value <= most, "is greater than the maximum of {}".format
    ),
    "minLength": _simple(
        "minLength",
        str,
        lambda value, least: len(value) >= least,
        lambda least: f"is shorter than {_count(least, 'character', 'characters')}",
    ),
    "maxLength": _simple(
        "maxLength",
        str,
        lambda value, most: len(value) <= most,
        lambda most: f"is longer than {_count(most, 'character', 'characters')}",
    ),
    "minItems": _simple(
        "minItems",
        list,
        lambda value, least: len(value) >= least,
        lambda least: f"has less than {_count(least, 'item', 'items')}",
    ),
    "maxProperties": _simple(
        "maxProperties",
        dict,
        lambda value, most: len(value) <= most,
        lambda most: f"has more than {_count(most, 'property', 'properties')}",
    ),
    "uniqueItems": _simple("uniqueItems", list, _are_unique, lambda _: "has non-unique elements"),
}


# --- Keywords with schemas in them

_Compile = Callable[[Any], _Check]


def _each(said: Callable[[Any], _Said]) -> _Check:
    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        for keyword, message in said(value):
            found.append(SchemaFinding(path, keyword, message))

    return check


def _all_of(checks: list[_Check]) -> _Check:
    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        for one in checks:
            one(value, path, found)

    return check


def _fits(check: _Check, value: Any) -> bool:
    found: list[SchemaFinding] = []
    check(value, (), found)
    return not found


def _properties(compile_schema: _Compile, argument: dict[str, Any], _: Any) -> _Check:
    checks = {name: compile_schema(schema) for name, schema in argument.items()}

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if isinstance(value, dict):
            for name, one in checks.items():
                if name in value:
                    one(value[name], (*path, name), found)

    return check


def _pattern_properties(compile_schema: _Compile, argument: dict[str, Any], _: Any) -> _Check:
    checks = [(compile_pattern(text).search, compile_schema(schema)) for text, schema in argument.items()]

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if isinstance(value, dict):
            for find, one in checks:
                for name, inner in value.items():
                    if find(name):
                        one(inner, (*path, name), found)

    return check


def _additional_properties(compile_schema: _Compile, argument: Any, schema: dict[str, Any]) -> _Check:
    known = frozenset(schema.get("properties", ()))
    patterns = [compile_pattern(text).search for text in schema.get("patternProperties", ())]
    inner = compile_schema(argument)

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if not isinstance(value, dict):
            return
        others = [name for name in value if name not in known and not any(find(name) for find in patterns)]
        if argument is False and others:
            names = ", ".join(f"'{name}'" for name in others)
            verb = "was" if len(others) == 1 else "were"
            message = f"Additional properties are not allowed ({names} {verb} unexpected)"
            found.append(SchemaFinding(path, "additionalProperties", message))
        elif argument is not False:
            for name in others:
                inner(value[name], (*path, name), found)

    return check


def _property_names(compile_schema: _Compile, argument: Any, _: Any) -> _Check:
    inner = compile_schema(argument)

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if isinstance(value, dict):
            wrong: list[SchemaFinding] = []
            for name in value:
                inner(name, path, wrong)
            found += [SchemaFinding(path, "propertyNames", one.message) for one in wrong]

    return check


def _items(compile_schema: _Compile, argument: Any, _: Any) -> _Check:
    inner = compile_schema(argument)

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                inner(item, (*path, index), found)

    return check


def _contains(compile_schema: _Compile, argument: Any, _: Any) -> _Check:
    inner = compile_schema(argument)

    def said(value: Any) -> _Said:
        if not isinstance(value, list) or any(_fits(inner, item) for item in value):
            return []
        return [("contains", f"None of {_text(value)} are valid under the given schema")]

    return _each(said)


def _any_of(compile_schema: _Compile, argument: list[Any], _: Any) -> _Check:
    inner = [compile_schema(schema) for schema in argument]

    def said(value: Any) -> _Said:
        if any(_fits(one, value) for one in inner):
            return []
        return [
            ("anyOf", f"{_text(value)} is not valid under any of the schemas listed in the 'anyOf' keyword")
        ]

    return _each(said)


def _not(compile_schema: _Compile, argument: Any, _: Any) -> _Check:
    inner, forbidden = compile_schema(argument), _text(argument)
    return _each(
        lambda value: (
            [("not", f"{forbidden} is not allowed for {_text(value)}")] if _fits(inner, value) else []
        )
    )


def _if(compile_schema: _Compile, argument: Any, schema: dict[str, Any]) -> _Check:
    condition, then = compile_schema(argument), compile_schema(schema.get("then", True))

    def check(value: Any, path: _Path, found: list[SchemaFinding]) -> None:
        if _fits(condition, value):
            then(value, path, found)

    return check


_SUBSCHEMAS: dict[str, Callable[[_Compile, Any, Any], _Check]] = {
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "items": _items,
    "contains": _contains,
    "anyOf": _any_of,
    "allOf": lambda compile_schema, argument, _: _all_of([compile_schema(one) for one in argument]),
    "not": _not,
    "if": _if,
}
