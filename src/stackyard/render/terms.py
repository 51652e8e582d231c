"""The terms of OpenTofu JSON: literal texts, and the expressions between them."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any

from stackyard.desired import Secret
from stackyard.render.names import label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stackyard.desired import Text

__all__ = [
    "Expression",
    "Json",
    "blocks",
    "expression",
    "literal",
    "normalize_number",
    "present",
    "template",
    "variable",
]

# What a JSON document is made of.
Json = Any

_LONE_RETURN = re.compile(r"(\$*)\r(?!\n)")


class Expression(str):
    """A text that is OpenTofu's already, as opposed to one that only looks like it."""

    __slots__ = ()


def expression(code: str) -> Expression:
    """Return what OpenTofu computes."""
    return Expression("${" + code + "}")


def literal(text: str) -> Expression:
    """Return a text so that OpenTofu reads it as it is.

    After a carriage return without a line feed the engine reads no `${` in the rest of a text, escaped or
    not. Such a one is written as an expression of its own, together with dollars that would escape it.
    """
    escaped = text.replace("${", "$${").replace("%{", "%%{")
    return Expression(_LONE_RETURN.sub(lambda found: expression(f'"{found[1]}\\r"'), escaped))


def variable(secret: Secret) -> str:
    """Return the name of the variable that brings a secret."""
    return f"secret_{label(secret.secret)}"


def template(text: Text) -> Expression:
    """Return a text with its secrets as variables; the texts beside them stay exactly what they are."""
    parts = (text,) if isinstance(text, str) else text
    # Texts are joined before they are escaped: `$` in one and `{` in the next would begin an expression.
    runs = [
        (kind, list(run)) for kind, run in itertools.groupby(parts, key=lambda part: isinstance(part, str))
    ]
    written = []
    for number, (is_text, run) in enumerate(runs):
        if is_text:
            written.append(_beside("".join(map(str, run)), is_last=number == len(runs) - 1))
        else:
            written += [_reference(part) for part in run if isinstance(part, Secret)]
    return Expression("".join(written))


def _beside(text: str, *, is_last: bool) -> Expression:
    """Return a text; dollars at its end become an expression where one follows, which they would escape."""
    head = text if is_last else text.rstrip("$")
    dollars = text[len(head) :]
    return Expression(literal(head) + (expression(f'"{dollars}"') if dollars else ""))


def _reference(secret: Secret) -> Expression:
    value = f"var.{variable(secret)}"
    if not secret.is_escaped:
        return expression(value)
    # Not by position: a position counts what is seen as one character, which may be a quote and an accent.
    quote = r'"\""'
    return expression(f"trimsuffix(trimprefix(jsonencode({value}), {quote}), {quote})")


def present(values: Mapping[str, Json]) -> dict[str, Json]:
    """Return what is there: no None, no empty list; plain texts as literals."""
    return {
        name: _term(value) for name, value in values.items() if value is not None and value not in ((), [])
    }


def blocks(*values: Mapping[str, Json] | None) -> list[dict[str, Json]]:
    """Return nested blocks, one for each mapping that is there."""
    return [present(value) for value in values if value is not None]


def _term(value: Json) -> Json:
    if isinstance(value, str) and not isinstance(value, Expression):
        return literal(value)
    if isinstance(value, tuple):
        return [_term(item) for item in value]
    return value


def normalize_number(number: float | None) -> float | int | None:
    """Return a number as OpenTofu writes it, so that 1.0 and 1 are one text."""
    return int(number) if number is not None and number == int(number) else number
