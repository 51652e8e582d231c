"""What an expression can be, as far as that is known without an engine: texts, or patterns for them.

A value is a set of globs (see `globs`): a constant is one that means itself, and the elements of a `fileset`
are the pattern that they match. Nothing is returned where an expression may be something else.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stackyard.sources.stacks.code_file import UNKNOWN, Expression, VariableBlock
from stackyard.sources.stacks.globs import escape, is_glob

__all__ = ["ModuleScope", "Names", "Values", "element_values", "evaluate", "unescape"]

Names = Mapping[str, Expression]
Values = frozenset[str]

_DEEPEST = 60
# More texts than this are no choice between a few files.
_MOST_VALUES = 64
_ESCAPE = re.compile(r"\\(.)")
_NO_NAMES: Names = {}
# Functions whose result is one of their arguments, or made of all of their elements.
_CHOICES = frozenset(("try", "coalesce", "sensitive", "nonsensitive", "tostring"))
_COLLECTIONS = frozenset("toset tolist sort distinct concat setunion flatten compact reverse".split())


@dataclass(slots=True, kw_only=True)
class ModuleScope:
    """A module where it is called: what its references mean.

    Attributes:
        folder: The folder of the module, absolute and without links.
        root: The folder of the stack.
        locals: Its local values.
        variables: Its variables.
        arguments: What it is called with; None for the stack itself.
        caller: The module that calls it.
        names: Names that hold around the call.
        root_values: What files set a variable of the stack to, one for each file that does.
        key: What tells it from the same module called in another way.
    """

    folder: str
    root: str
    locals: Mapping[str, Expression]
    variables: Mapping[str, VariableBlock]
    arguments: Mapping[str, Expression] | None = None
    caller: ModuleScope | None = None
    names: Names = field(default_factory=dict)
    root_values: Callable[[str], Sequence[Expression] | None] = lambda name: ()
    key: str = ""


# An expression, with what its references mean.
_Bound = tuple[Expression, ModuleScope, Names]


def unescape(pattern: str) -> str:
    """Return the text that a pattern without special signs means."""
    return _ESCAPE.sub(r"\1", pattern) if "\\" in pattern else pattern


def evaluate(
    expression: Expression, scope: ModuleScope, names: Names = _NO_NAMES, depth: int = 0
) -> Values | None:
    """Return every text that an expression can be, None where that is not known."""
    if isinstance(expression, str):
        return frozenset((escape(expression),))
    if depth > _DEEPEST:
        return None
    kind = expression[0]
    if kind == "t":
        return _join([evaluate(part, scope, names, depth + 1) for part in expression[1:]])
    if kind == "i":
        return _union(evaluate(part, scope, names, depth + 1) for part in expression[1:])
    if kind == "c":
        return _call(expression, scope, names, depth)
    if kind != "r":
        return None
    if expression[1] == "path" and len(expression) == 3:
        place = scope.folder if expression[2] == "module" else scope.root
        return frozenset((escape(place),)) if expression[2] in ("module", "root", "cwd") else None
    if (element := _element_of(expression, names)) is not None:
        wants_key, collection = element
        return element_values(collection, scope, names, wants_key=wants_key, depth=depth + 1)
    found = _follow(expression, scope, names, depth)
    return None if not found else _union(evaluate(*one, depth + 1) for one in found)


def element_values(
    collection: Expression, scope: ModuleScope, names: Names, *, wants_key: bool = False, depth: int = 0
) -> Values | None:
    """Return every text that an element of a collection can be, or its key."""
    if isinstance(collection, str) or depth > _DEEPEST:
        return None
    kind = collection[0]
    if kind == "l":
        return _union(evaluate(one, scope, names, depth + 1) for one in collection[1:])
    if kind == "o":
        if wants_key:
            return frozenset(escape(key) for key in collection[1])
        return _union(evaluate(one, scope, names, depth + 1) for one in collection[1].values())
    if kind == "i" or (kind == "c" and collection[1] in _COLLECTIONS):
        parts = collection[1:] if kind == "i" else collection[2:]
        return _union(
            element_values(one, scope, names, wants_key=wants_key, depth=depth + 1) for one in parts
        )
    if kind == "c" and collection[1] == "fileset" and len(collection) == 4:
        patterns = evaluate(collection[3], scope, names, depth + 1)
        # The pattern was escaped as a text; here it is what files are found by.
        return None if patterns is None else frozenset(unescape(one) for one in patterns)
    if kind == "r":
        found = _follow(collection, scope, names, depth)
        return (
            None
            if not found
            else _union(
                element_values(one, of, known, wants_key=wants_key, depth=depth + 1)
                for one, of, known in found
            )
        )
    return None


def _element_of(expression: Sequence[str], names: Names) -> tuple[bool, Expression] | None:
    """Return the collection that a reference takes an element of, and whether it takes the key."""
    bound = names.get(expression[1])
    if not isinstance(bound, list):
        return None
    how, collection = bound
    rest = expression[2:]
    if how == "each":
        return (rest[0] == "key", collection) if rest in (["key"], ["value"]) else (False, UNKNOWN)
    return (how == "key", collection) if not rest else (False, UNKNOWN)


def _follow(expression: Sequence[str], scope: ModuleScope, names: Names, depth: int) -> list[_Bound]:
    """Return what a reference to a local value or a variable leads to; several where files disagree."""
    kind, *rest = expression[1:]
    if not rest or depth > _DEEPEST:
        return []
    if kind == "local":
        value = scope.locals.get(rest[0])
        found: list[_Bound] = [] if value is None else [(value, scope, _NO_NAMES)]
    elif kind == "var":
        found = _variable(rest[0], scope)
    else:
        return []
    for key in rest[1:]:
        found = [step for one in found for step in _attribute(one, key, depth)]
    return found


def _attribute(bound: _Bound, key: str, depth: int) -> list[_Bound]:
    expression, scope, names = bound
    if isinstance(expression, str) or depth > _DEEPEST:
        return []
    if expression[0] == "o":
        return [(expression[1][key], scope, names)] if key in expression[1] else []
    if expression[0] == "r":
        return [
            step
            for one in _follow(expression, scope, names, depth + 1)
            for step in _attribute(one, key, depth + 1)
        ]
    return []


def _variable(name: str, scope: ModuleScope) -> list[_Bound]:
    block = scope.variables.get(name)
    if block is None:
        return []
    default: list[_Bound] = [(block.default, scope, _NO_NAMES)] if block.has_default else []
    if scope.arguments is not None:
        given = scope.arguments.get(name)
        if given is None or scope.caller is None:
            return default
        return [(given, scope.caller, scope.names)]
    values = scope.root_values(name)
    if values is None:
        return []
    return [(value, scope, _NO_NAMES) for value in values] or default


def _call(expression: Sequence[Expression], scope: ModuleScope, names: Names, depth: int) -> Values | None:
    name, arguments = expression[1], expression[2:]
    if name in _CHOICES:
        return _union(evaluate(one, scope, names, depth + 1) for one in arguments)
    values = [evaluate(one, scope, names, depth + 1) for one in arguments]
    if not values or values[0] is None:
        return None
    if name in ("abspath", "pathexpand") and len(values) == 1:
        return values[0]
    if name in ("dirname", "basename") and len(values) == 1:
        if any(is_glob(one) for one in values[0]):
            return None
        cut = os.path.dirname if name == "dirname" else os.path.basename
        return frozenset(escape(cut(unescape(one))) for one in values[0])
    if name == "join" and len(arguments) == 2 and isinstance(arguments[1], list) and arguments[1][0] == "l":
        parts: list[Values | None] = []
        for one in arguments[1][1:]:
            parts += [*([values[0]] if parts else []), evaluate(one, scope, names, depth + 1)]
        return _join(parts)
    if name == "format" and isinstance(arguments[0], str):
        texts = arguments[0].split("%s")
        if len(texts) == len(values) and not any("%" in text for text in texts):
            rest = zip([*values[1:], frozenset(("",))], texts, strict=True)
            return _join([part for value, text in rest for part in (frozenset((escape(text),)), value)])
    return None


def _join(parts: Sequence[Values | None]) -> Values | None:
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    count = 1
    for part in known:
        count *= len(part)
    return frozenset("".join(row) for row in itertools.product(*known)) if count <= _MOST_VALUES else None


def _union(parts: object) -> Values | None:
    found: set[str] = set()
    for part in parts:  # type: ignore[attr-defined]
        if part is None:
            return None
        found |= part
    return frozenset(found) if len(found) <= _MOST_VALUES else None
